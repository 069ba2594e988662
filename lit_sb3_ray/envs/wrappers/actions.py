"""Wrappers that change actions on their way to the environment, or tell which ones are allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from lit_sb3_ray.errors import ConfigError

# Keeps the noise apart from whatever else draws from a generator with the same seed.
_NOISE_STREAM = 0x6E6F697365


def _box_actions(env: gym.Env, wrapper: str) -> spaces.Box:
    if not isinstance(env.action_space, spaces.Box):
        raise ConfigError(f"{wrapper} needs continuous actions (Box), the environment has {env.action_space}")
    return env.action_space


class ActionNoiseWrapper(gym.Wrapper[Any, np.ndarray, Any, np.ndarray]):
    """Adds Gaussian noise to the actions unseen by the agent, to test how robust its control is.

    The noise has a generator of its own, seeded by `reset(seed=...)`.

    Attributes:
        noise_std: Standard deviation, in units of the action.
    """

    def __init__(self, env: gym.Env, noise_std: float = 0.1) -> None:
        """Wraps an environment with continuous actions.

        Args:
            env: The environment.
            noise_std: Standard deviation of the noise; noisy actions are clipped to the action space.

        Raises:
            ConfigError: The actions are not continuous, or `noise_std` is negative.
        """
        super().__init__(env)
        if noise_std < 0:
            raise ConfigError(f"noise_std of ActionNoiseWrapper must not be negative, got {noise_std}")
        self.noise_std = noise_std
        self._space = _box_actions(env, "ActionNoiseWrapper")
        self._rng = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment, and the noise if a seed is given."""
        if seed is not None:
            self._rng = np.random.default_rng([seed, _NOISE_STREAM])
        return self.env.reset(seed=seed, options=options)

    def step(self, action: np.ndarray) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps with the noisy action, of the shape and dtype of the action space."""
        noisy = action + self._rng.normal(0.0, self.noise_std, size=np.shape(action))
        return self.env.step(np.clip(noisy, self._space.low, self._space.high).astype(self._space.dtype))


class ActionSmoothingWrapper(gym.Wrapper[Any, np.ndarray, Any, np.ndarray]):
    """Replaces actions by their exponential moving average, which starts at zero in each episode.

    Attributes:
        smoothing_coef: Weight of the past.
    """

    def __init__(self, env: gym.Env, smoothing_coef: float = 0.0) -> None:
        """Wraps an environment with continuous actions.

        Args:
            env: The environment.
            smoothing_coef: From 0 (actions as they are) to 1 (nothing but the past).

        Raises:
            ConfigError: The actions are not continuous, or the coefficient lies outside 0 to 1.
        """
        super().__init__(env)
        _box_actions(env, "ActionSmoothingWrapper")
        if not 0 <= smoothing_coef <= 1:
            raise ConfigError(f"smoothing_coef of ActionSmoothingWrapper must be from 0 to 1, got {smoothing_coef}")
        self.smoothing_coef = smoothing_coef
        self._average: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment and forgets the past."""
        self._average = None
        return self.env.reset(seed=seed, options=options)

    def step(self, action: np.ndarray) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps with the average, of the action's shape and dtype."""
        past = np.zeros_like(action) if self._average is None else self._average
        self._average = self.smoothing_coef * past + (1 - self.smoothing_coef) * action
        return self.env.step(self._average)


class ActionMasker(gym.Wrapper[Any, Any, Any, Any]):
    """Offers the method `action_masks` that MaskablePPO asks for, where the environment has it under another name."""

    def __init__(self, env: gym.Env, action_mask_fn: str | Callable[[gym.Env], np.ndarray]) -> None:
        """Wraps an environment with discrete actions.

        Args:
            env: The environment.
            action_mask_fn: Name of a method of the environment or of any wrapper around it, or a function of the wrapped
                environment; either returns booleans, True for an allowed action.

        Raises:
            ConfigError: There is no such method.
        """
        super().__init__(env)
        self._masks: Callable[[], np.ndarray]
        if isinstance(action_mask_fn, str):
            if not env.has_wrapper_attr(action_mask_fn) or not callable(env.get_wrapper_attr(action_mask_fn)):
                raise ConfigError(f"action_mask_fn of ActionMasker: {env.unwrapped} has no method {action_mask_fn!r}")
            self._masks = env.get_wrapper_attr(action_mask_fn)
        else:
            self._masks = lambda: action_mask_fn(env)

    def action_masks(self) -> np.ndarray:
        """Returns which actions are allowed now, shape `(n_actions,)`."""
        return self._masks()
