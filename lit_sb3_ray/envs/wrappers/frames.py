"""Wrappers for environments that show pictures: fewer frames, smaller frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.wrappers import ResizeObservation

from lit_sb3_ray.errors import ConfigError


class FrameSkip(gym.Wrapper[Any, Any, Any, Any]):
    """Repeats each action and sums up the rewards; the agent sees the last frame only."""

    def __init__(self, env: gym.Env, skip: int = 4) -> None:
        """Wraps an environment.

        Args:
            env: The environment.
            skip: How many times an action is taken, unless the episode ends before.

        Raises:
            ConfigError: `skip` is not positive.
        """
        super().__init__(env)
        if skip < 1:
            raise ConfigError(f"skip of FrameSkip must be at least 1, got {skip}")
        self._skip = skip

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes the action `skip` times and returns the last step with the sum of the rewards."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        # From 0.0 on, as a sum is: the same bits, -0.0 included, however many steps there are.
        total = 0.0 + float(reward)
        for _ in range(self._skip - 1):
            if terminated or truncated:
                break
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
        return observation, total, terminated, truncated, info


class YAMLCompatResizeObservation(ResizeObservation[Any, Any, Any]):
    """Resizes images to a height and a width that a YAML file gives as a list."""

    def __init__(self, env: gym.Env, shape: Sequence[int]) -> None:
        """Wraps an environment whose observations are images of bytes.

        Args:
            env: The environment.
            shape: Height and width in pixels.

        Raises:
            ConfigError: `shape` is not two numbers.
        """
        if len(shape) != 2:
            raise ConfigError(f"shape of YAMLCompatResizeObservation must be [height, width], got {list(shape)}")
        super().__init__(env, (shape[0], shape[1]))
