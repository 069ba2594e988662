"""Wrappers that change the reward or the end of an episode."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from lit_sb3_ray.errors import ConfigError


class TruncatedOnSuccessWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Ends an episode once its goal was held for some steps in a row, and shifts the reward; for tasks with a goal.

    The shift also holds for `compute_reward`, by which hindsight replay judges goals put in afterwards.

    Attributes:
        reward_offset: Added to each reward.
        n_successes: Steps in a row with `info["is_success"]` that end the episode.
        current_successes: Such steps so far.
    """

    def __init__(self, env: gym.Env, reward_offset: float = 0.0, n_successes: int = 1) -> None:
        """Wraps an environment that reports `is_success`.

        Args:
            env: The environment.
            reward_offset: Added to each reward.
            n_successes: Successful steps in a row after which the episode is truncated.

        Raises:
            ConfigError: `n_successes` is not positive.
        """
        super().__init__(env)
        if n_successes < 1:
            raise ConfigError(f"n_successes of TruncatedOnSuccessWrapper must be at least 1, got {n_successes}")
        self.reward_offset = reward_offset
        self.n_successes = n_successes
        self.current_successes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment and the count of successes."""
        self.current_successes = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps, shifts the reward and truncates after enough successes."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.current_successes = self.current_successes + 1 if info.get("is_success", False) else 0
        truncated = truncated or self.current_successes >= self.n_successes
        return observation, float(reward) + self.reward_offset, terminated, truncated, info

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any) -> Any:
        """Judges achieved goals by desired ones.

        Args:
            achieved_goal: Shape `(goal_dim,)`, or `(batch, goal_dim)`.
            desired_goal: Same shape.
            info: One info dict, or one per row.

        Returns:
            The environment's reward plus the offset, one per row for a batch.

        Raises:
            AttributeError: The environment has no `compute_reward`.
        """
        # Wrappers in between, such as the Monitor, do not forward attributes in gymnasium 1.x.
        return self.env.get_wrapper_attr("compute_reward")(achieved_goal, desired_goal, info) + self.reward_offset


class DelayedRewardWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Holds the reward back and pays it in sums, which is harder to learn from.

    Attributes:
        delay: Steps from one payment to the next; the end of an episode pays what is left.
    """

    def __init__(self, env: gym.Env, delay: int = 10) -> None:
        """Wraps an environment.

        Args:
            env: The environment.
            delay: Steps from one payment to the next.

        Raises:
            ConfigError: `delay` is not positive.
        """
        super().__init__(env)
        if delay < 1:
            raise ConfigError(f"delay of DelayedRewardWrapper must be at least 1, got {delay}")
        self.delay = delay
        self._steps = 0
        self._owed = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment; nothing is owed any more."""
        self._steps = 0
        self._owed = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps, and pays the sum of the rewards since the last payment if one is due, else 0."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._owed += float(reward)
        self._steps += 1
        paid = 0.0
        if self._steps % self.delay == 0 or terminated or truncated:
            paid, self._owed = self._owed, 0.0
        return observation, paid, terminated, truncated, info
