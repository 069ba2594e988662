"""Pushing a run: evaluated, recorded where possible, described, uploaded."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.arguments import train_arguments
from lit_sb3_ray.experiment.locate import Which, find_model
from lit_sb3_ray.experiment.playback import Player
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.hub.connection import connect, telling
from lit_sb3_ray.hub.model_card import CardFacts, build_card
from lit_sb3_ray.hub.names import CARD, REPLAY, RESULTS, STATISTICS, model_name
from lit_sb3_ray.hub.replay import record_replay
from lit_sb3_ray.hub.results import Results, evaluate_player, write_results
from lit_sb3_ray.hub.staging import stage
from lit_sb3_ray.video.models import trained_steps

if TYPE_CHECKING:
    from huggingface_hub import HfApi

logger = logging.getLogger(__name__)

OpenPlayer = Callable[[str | None], Player]
"""Opens the agent with a render mode."""


@dataclass(frozen=True)
class Destination:
    """Where a run is pushed to.

    Attributes:
        organization: The user or organization.
        repo_name: The repository's name.
        public: Whether all may see it.
        commit_message: What the commit is called.
    """

    organization: str
    repo_name: str
    public: bool = False
    commit_message: str = "Initial commit"

    @property
    def repo_id(self) -> str:
        """The repository's id."""
        return f"{self.organization}/{self.repo_name}"


@dataclass(frozen=True)
class Pushed:
    """What became of a push.

    Attributes:
        url: The repository's page.
        private: Whether only those may see it who are let in.
        results: The evaluation.
    """

    url: str
    private: bool
    results: Results


def push_run(
    path: Path,
    algo: str,
    env_id: str,
    which: Which,
    destination: Destination,
    open_player: OpenPlayer,
    *,
    video_length: int = 1000,
    n_eval_episodes: int = 10,
    seed: int = 0,
    env_kwargs: dict[str, Any] | None = None,
    token: str | None = None,
) -> Pushed:
    """Pushes one of a run's models with all that is needed to play it, and a model card.

    What an interrupted push has uploaded already is not uploaded again by the next one.

    Args:
        path: The run folder.
        algo: The run's algorithm.
        env_id: The run's environment.
        which: Which of its models.
        destination: Where it goes.
        open_player: Opens that model.
        video_length: Steps of the replay video; 0 for none.
        n_eval_episodes: Episodes of the evaluation.
        seed: Seeds the evaluation.
        env_kwargs: Arguments of the environment's constructor, over those of the run.
        token: See `connect`.

    Raises:
        ConfigError: There is no such model, or the Hub cannot be reached or refuses; or a repository that is there is public
            and the destination is not.
    """
    api = connect(token)
    run = run_folder.open_run(path, env_id)
    model = find_model(path, env_id, which)
    check_destination(api, destination)
    player = open_player(None)
    try:
        results = evaluate_player(player, n_eval_episodes, seed)
        algo_class = type(player.model).__name__
    finally:
        player.env.close()
    logger.info("Mean reward of %d episodes: %s", results.n_eval_episodes, results.spread)
    with tempfile.TemporaryDirectory(prefix="lit_sb3_ray_push_") as place:
        folder = Path(place) / "repository"
        folder.mkdir()
        hyperparameters = run_folder.read_hyperparameters(run)
        arguments = _arguments(run, algo)
        kwargs = {**(hyperparameters.get("env_kwargs") or {}), **(arguments.get("env_kwargs") or {}), **(env_kwargs or {})}
        stage(run, algo, model, hyperparameters, arguments, kwargs, folder)
        write_results(results, folder)
        replay = video_length > 0 and record_replay(lambda: open_player("rgb_array"), video_length, folder)
        facts = CardFacts(
            algo=algo,
            algo_class=algo_class,
            env_id=env_id,
            organization=destination.organization,
            repo_name=None if destination.repo_name == model_name(algo, env_id) else destination.repo_name,
            hyperparameters=hyperparameters,
            env_kwargs=kwargs,
            gym_packages=tuple(arguments.get("gym_packages") or ()),
            results=results,
            n_timesteps=trained_steps(model),
            replay=replay,
        )
        (folder / CARD).write_text(build_card(facts), encoding="utf-8")
        url, private = _upload(api, destination, folder, model_name(algo, env_id))
    return Pushed(url, private, results)


def check_destination(api: HfApi, destination: Destination) -> None:
    """Checks, before anything is played, that there is a token and that the repository may be pushed to.

    Args:
        api: The client.
        destination: Where the push goes.

    Raises:
        ConfigError: There is no token; or the repository is there and public, and the destination is not.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    with telling(destination.repo_id, "push to"):
        api.whoami()
        try:
            private = api.model_info(destination.repo_id).private
        except RepositoryNotFoundError:
            return
    if private is False and not destination.public:
        raise ConfigError(f"{destination.repo_id} is there already and is public: give --public to push to it")
    if private and destination.public:
        logger.warning("%s is there already and is private: it stays so until its settings are changed", destination.repo_id)


def _upload(api: HfApi, destination: Destination, folder: Path, name: str) -> tuple[str, bool]:
    """Uploads a folder; what an earlier push has left and this one does not have is removed."""
    leftovers = [file for file in (STATISTICS, REPLAY, RESULTS) if not (folder / file).exists()]
    with telling(destination.repo_id, "push to"):
        url = api.create_repo(destination.repo_id, private=not destination.public, exist_ok=True)
        api.upload_folder(
            repo_id=destination.repo_id,
            folder_path=folder,
            commit_message=destination.commit_message,
            delete_patterns=[*leftovers, f"{name}/*"],
        )
        return str(url), bool(api.model_info(destination.repo_id).private)


def _arguments(run: RunFolder, algo: str) -> dict[str, Any]:
    if (run.settings / "args.yml").exists():
        return run_folder.read_arguments(run)
    return train_arguments({"algo": algo, "env": run.env_id})
