"""What can be found wrong with the runs of a sweep before any of them starts."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stable_baselines3.common.vec_env import DummyVecEnv

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.envs.families import register_env
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
"""Algorithm and environment."""


class BadCombinationsError(ConfigError):
    """Some combinations of a sweep cannot be trained.

    Attributes:
        problems: One line each.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True)
class Extent:
    """How much one run of a pair is.

    Attributes:
        n_timesteps: Env steps.
        env_actors: Environments that live in actors of their own.
    """

    n_timesteps: int
    env_actors: int


def check_folders(pairs: Iterable[Pair]) -> None:
    """Refuses pairs whose run folders would have the same name.

    Raises:
        ConfigError: Two have.
    """
    seen: dict[Pair, Pair] = {}
    for algo, env_id in pairs:
        other = seen.setdefault((algo_folder_name(algo), env_folder_name(env_id)), (algo, env_id))
        if other != (algo, env_id):
            raise ConfigError(
                f"{algo} on {env_id} and {other[0]} on {other[1]} would have the same run folders: sweep them apart"
            )


def probe(pairs: Iterable[Pair], settings: Mapping[str, Any], *, gpus: float) -> dict[Pair, Extent]:
    """Builds the environment and the model of each pair once, here, and lets them go again.

    Args:
        pairs: The pairs.
        settings: Arguments of `ExperimentManager`, but for `algo` and `env_id`.
        gpus: GPUs that a run is given; this process need not have any.

    Returns:
        How much one run of each pair is.

    Raises:
        BadCombinationsError: Some cannot be built.
        ConfigError: A GPU is asked for that runs would not see.
    """
    if gpus <= 0 and str(settings.get("device", "auto")).startswith("cuda"):
        raise ConfigError(f"--device {settings['device']}: a run has a GPU, or a part of one, with --gpus-per-run")
    here = {**settings, "verbose": 0}
    if gpus > 0:
        here["device"] = "cpu"
    wanted = list(pairs)
    problems = _check_names(wanted, settings.get("gym_packages", ()))
    extents: dict[Pair, Extent] = {}
    for algo, env_id in wanted if not problems else ():
        try:
            manager = ExperimentManager(**{**here, "algo": algo, "env_id": env_id})
            manager.default_vec_env_cls = DummyVecEnv
            manager.read_hyperparameters()
            _build(manager)
        except ConfigError as error:
            text = str(error)
            problems.append(text if algo in text and env_id in text else f"{algo} on {env_id}: {text}")
            continue
        in_actors = settings.get("vec_env_type") in ("ray", "subproc")
        fleets = (manager.n_envs, manager.n_eval_envs) if in_actors else ()
        # A single environment stays in its run's process.
        extents[algo, env_id] = Extent(manager.hyperparams.n_timesteps, sum(size for size in fleets if size > 1))
    if problems:
        raise BadCombinationsError(problems)
    return extents


def _check_names(pairs: Iterable[Pair], gym_packages: Sequence[str]) -> list[str]:
    """What is wrong with algorithms and environments by themselves, which would be said again for each pair."""
    algos, envs = (dict.fromkeys(names) for names in zip(*pairs, strict=True))
    problems = []
    checks: list[Callable[[], object]] = [partial(resolve_algorithm, algo) for algo in algos]
    checks += [partial(register_env, env_id, gym_packages) for env_id in envs]
    for check in checks:
        try:
            check()
        except ConfigError as error:
            problems.append(str(error))
    return problems


def _build(manager: ExperimentManager) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What SB3 has to say of the model, each run says in its own output.
            env = manager.create_envs(manager.n_envs, no_log=True)
            try:
                manager.create_model(env)
            finally:
                env.close()
    except ConfigError:
        raise
    except Exception:  # An env may raise anything. Its runs will too, and it is told there, with the traceback.
        logger.info("%s on %s cannot be tried out beforehand", manager.algo, manager.env_id, exc_info=True)
    finally:
        gc.collect()  # A model and its parts refer to each other; buffers are large.
