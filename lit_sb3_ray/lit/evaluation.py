"""Evaluating a policy: returns and lengths of whole episodes, without touching the training's random streams."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.replay import close_episodes


@dataclass(frozen=True)
class Evaluation:
    """Results of one evaluation.

    Attributes:
        returns: Undiscounted return of each episode.
        lengths: Env steps of each episode.
        successes: `is_success` of each episode's last info; empty when the env tells none.
    """

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    successes: tuple[bool, ...] = field(default=())

    @property
    def mean_reward(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def std_reward(self) -> float:
        """Population standard deviation of the returns."""
        return float(np.std(self.returns))

    @property
    def mean_ep_length(self) -> float:
        """Mean episode length in env steps."""
        return float(np.mean(self.lengths))

    @property
    def success_rate(self) -> float | None:
        """Share of successful episodes; None when the env tells none."""
        return float(np.mean(self.successes)) if self.successes else None

    def figures(self) -> dict[str, Any]:
        """What sums the episodes up, by name; a success rate only if the env tells successes."""
        found: dict[str, Any] = {
            "mean_reward": self.mean_reward,
            "std_reward": self.std_reward,
            "mean_episode_length": self.mean_ep_length,
            "std_episode_length": float(np.std(self.lengths)),
            "n_eval_episodes": len(self.returns),
        }
        return found if self.success_rate is None else found | {"success_rate": self.success_rate}


def evaluate(
    model: Any,
    env: VecEnv,
    n_episodes: int,
    *,
    deterministic: bool = True,
    seed: int | None = None,
    use_masking: bool = True,
    render: bool = False,
) -> Evaluation:
    """Plays whole episodes and sums their rewards.

    Args:
        model: An SB3 algorithm, or any object with its `predict`.
        env: Where to play; a `Monitor` inside it gives the raw returns.
        n_episodes: Episodes in all, shared evenly by the envs.
        deterministic: Take the policy's mode instead of sampling.
        seed: Seeds the envs and the policy's sampling; the same seed gives the same result. None goes on with the envs'
            own streams.
        use_masking: Give the env's action masks, if it has any, to a model that takes them.
        render: Render every step.

    Returns:
        The results, in the order in which the episodes ended.
    """
    successes: list[bool] = []

    def note_success(local_variables: dict[str, Any], _: dict[str, Any]) -> None:
        info = local_variables["info"]
        if local_variables["done"] and info.get("is_success") is not None:
            successes.append(bool(info["is_success"]))

    play: Any = evaluate_policy
    masking: dict[str, bool] = {}
    if takes_masks(model):
        from sb3_contrib.common.maskable.evaluation import evaluate_policy as play
        from sb3_contrib.common.maskable.utils import is_masking_supported

        masking = {"use_masking": use_masking and is_masking_supported(env)}
    with own_random_stream(seed, getattr(model, "device", "cpu")), own_random_actions(model, seed):
        if seed is not None:
            env.seed(seed)
        returns, lengths = play(
            model,
            env,
            n_eval_episodes=n_episodes,
            deterministic=deterministic,
            render=render,
            return_episode_rewards=True,
            callback=note_success,
            warn=False,
            **masking,
        )
    return Evaluation(tuple(map(float, returns)), tuple(map(int, lengths)), tuple(successes))


def takes_masks(model: Any) -> bool:
    """Whether a model's `predict` takes action masks, as MaskablePPO's does."""
    return "action_masks" in inspect.signature(model.predict).parameters


@contextmanager
def own_random_stream(seed: int | None, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seeds the global generators for a while and then puts them back, so that training draws as if nothing had run.

    Args:
        seed: The seed; None goes on from where the generators stand.
        device: The policy's device, whose generator is put back too.
    """
    python, numpy = random.getstate(), np.random.get_state()
    place = torch.device(device) if isinstance(device, str | torch.device) else torch.device("cpu")
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed % 2**32)
            torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


@contextmanager
def own_random_actions(model: Any, seed: int | None) -> Iterator[None]:
    """Does for a model's action space what `own_random_stream` does: DQN draws the actions from it that it explores with.

    Args:
        model: An algorithm, or any object; one without a discrete action space is left alone.
        seed: The seed; None goes on from where the space stands.
    """
    space = getattr(model, "action_space", None)
    if not isinstance(space, spaces.Discrete):
        yield
        return
    before = space.np_random.bit_generator.state
    if seed is not None:
        space.seed(seed)
    try:
        yield
    finally:
        space.np_random.bit_generator.state = before


@contextmanager
def normalized_alike(algorithm: BaseAlgorithm, env: VecEnv) -> Iterator[None]:
    """Lets an env normalise observations as the training envs do, for a while and without learning from what it sees.

    Args:
        algorithm: Its training envs' running statistics are taken over, if there are any.
        env: The env to play in.

    Raises:
        ConfigError: The policy was trained on normalised observations, and the env does not normalise.
    """
    training, playing = algorithm.get_vec_normalize_env(), unwrap_vec_normalize(env)
    if playing is None:
        if training is not None and training.norm_obs:
            raise ConfigError("the policy was trained on normalised observations: the env to play in needs a VecNormalize")
        yield
        return
    if training is not None and hasattr(training, "obs_rms"):
        playing.obs_rms = copy.deepcopy(training.obs_rms)
    before = playing.training
    playing.training = False
    try:
        yield
    finally:
        playing.training = before


def begin_anew(algorithm: Any) -> None:
    """Begins new episodes in an algorithm's own envs, after others have stepped them in the middle of its training."""
    if algorithm._last_obs is None:
        return
    algorithm._last_obs = algorithm.env.reset()
    algorithm._last_episode_starts = np.ones(algorithm.env.num_envs, dtype=bool)
    normalize = algorithm.get_vec_normalize_env()
    if normalize is not None:
        algorithm._last_original_obs = normalize.get_original_obs()
    if getattr(algorithm, "replay_buffer", None) is not None:
        close_episodes(algorithm.replay_buffer)


def evaluation_seed(seed: int, num_timesteps: int) -> int:
    """The seed of a run's evaluation at an env step: a stream of its own, and the same whether the run was resumed or not."""
    return int(np.random.SeedSequence([seed, 0xE7A1, num_timesteps]).generate_state(1)[0])
