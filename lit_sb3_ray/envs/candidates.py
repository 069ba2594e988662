"""Environments that play whole episodes by themselves: for ARS, which compares many policies of which each plays alone."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, unwrap_vec_normalize

from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import surround


@dataclass(frozen=True)
class Jobs:
    """What an environment is to play.

    Attributes:
        candidates: Number and weights (a vector, on the CPU) of each policy.
        n_episodes: Episodes of each.
        statistics: Running statistics of the observations to begin with; None goes on with the environment's own.
    """

    candidates: Sequence[tuple[int, Any]]
    n_episodes: int
    statistics: Any = None


@dataclass(frozen=True)
class Played:
    """What came of one candidate.

    Attributes:
        number: Its number.
        returns: Return of each episode.
        lengths: Env steps of each.
        episodes: What the Monitor tells of each.
    """

    number: int
    returns: list[float]
    lengths: list[int]
    episodes: list[dict[str, Any]]


class CandidateEnv(gym.Wrapper):
    """An environment with the vectorised wrappers of a training around it alone, in which candidate policies play.

    The learner sets `policy` and `jobs` and calls `play`; as attributes they also reach an environment that replaces a lost
    one. It stays an ordinary environment for whoever steps it.

    Attributes:
        policy: A policy, pickled, whose weights are those of a candidate while it plays.
        jobs: What to play.
    """

    policy: bytes = b""
    jobs: Jobs = Jobs((), 1)

    def __init__(self, env: gym.Env, recipe: EnvSpec, stack: Mapping[str, Any]) -> None:
        """Wraps an environment.

        Args:
            env: The environment.
            recipe: What it was built from, for messages.
            stack: The wrappers, as arguments of `surround`.
        """
        super().__init__(env)
        self._recipe = recipe
        self._stack = stack
        self._alone: VecEnv | None = None
        self._loaded: tuple[bytes, Any] = (b"", None)
        self._seed: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment; the first episode played after it has the same seed."""
        self._seed = seed if seed is not None else self._seed
        return self.env.reset(seed=seed, options=options)

    def play(self) -> tuple[list[Played], Any]:
        """Lets each candidate of `jobs` play its episodes.

        Returns:
            The results, and the running statistics of the observations after them, if there are any.
        """
        if self._alone is None:
            self._alone = surround(DummyVecEnv([lambda: self.env]), self._recipe, **self._stack)
        if self._seed is not None:
            self._alone.seed(self._seed)
            self._seed = None
        normalize = unwrap_vec_normalize(self._alone)
        if normalize is not None and self.jobs.statistics is not None:
            normalize.obs_rms = copy.deepcopy(self.jobs.statistics)
        results = [self._play(number, weights) for number, weights in self.jobs.candidates]
        return results, None if normalize is None else normalize.obs_rms

    def _play(self, number: int, weights: Any) -> Played:
        episodes: list[dict[str, Any]] = []

        def note(local_variables: dict[str, Any], _: dict[str, Any]) -> None:
            if local_variables["done"] and "episode" in local_variables["info"]:
                episodes.append(local_variables["info"]["episode"])

        policy = self._policy()
        policy.load_from_vector(weights)
        n_episodes = self.jobs.n_episodes
        assert self._alone is not None
        returns, lengths = evaluate_policy(
            policy, self._alone, n_eval_episodes=n_episodes, return_episode_rewards=True, callback=note, warn=False
        )
        assert isinstance(returns, list)
        assert isinstance(lengths, list)
        return Played(number, returns, lengths, episodes)

    def _policy(self) -> Any:
        if self._loaded[0] is not self.policy:
            self._loaded = (self.policy, pickle.loads(self.policy))
        return self._loaded[1]


def playing_candidates(spec: EnvSpec, stack: Mapping[str, Any]) -> EnvSpec:
    """Adds to the recipe of an environment that candidates can play in it.

    Args:
        spec: The recipe.
        stack: The vectorised wrappers around each, as arguments of `surround`.
    """
    return replace(spec, wrappers=(*spec.wrappers, (CandidateEnv, {"recipe": spec, "stack": stack})))
