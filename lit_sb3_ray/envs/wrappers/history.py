"""Wrappers that show the agent the last few observations and actions."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from lit_sb3_ray.errors import ConfigError


class _History:
    """The last observations and then the last actions of an episode in one vector, oldest first, zeros before its start.

    Attributes:
        space: Space of that vector, `horizon * (observation + action)` long, with the observations' dtype.
    """

    def __init__(self, observations: spaces.Space[Any], actions: spaces.Space[Any], horizon: int, wrapper: str) -> None:
        for name, space in (("observations", observations), ("actions", actions)):
            if not isinstance(space, spaces.Box) or len(space.shape) != 1:
                raise ConfigError(f"{wrapper} needs {name} that are vectors (Box), the environment has {space}")
        assert isinstance(observations, spaces.Box) and isinstance(actions, spaces.Box)
        if horizon < 1:
            raise ConfigError(f"horizon of {wrapper} must be at least 1, got {horizon}")
        low = np.concatenate((np.tile(observations.low, horizon), np.tile(actions.low, horizon)))
        high = np.concatenate((np.tile(observations.high, horizon), np.tile(actions.high, horizon)))
        self.space = spaces.Box(low=low, high=high, dtype=observations.dtype)
        self._observations = np.zeros(horizon * observations.shape[0], observations.low.dtype)
        self._actions = np.zeros(horizon * actions.shape[0], actions.low.dtype)

    def start(self, observation: np.ndarray) -> np.ndarray:
        """Forgets the past and begins with an episode's first observation."""
        self._observations[:] = 0
        self._actions[:] = 0
        self._observations[-len(observation) :] = observation
        return self._vector()

    def add(self, observation: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Adds what an action led to."""
        for past, newest in ((self._observations, observation), (self._actions, action)):
            past[: -len(newest)] = past[len(newest) :]
            past[-len(newest) :] = newest
        return self._vector()

    def _vector(self) -> np.ndarray:
        return np.concatenate((self._observations, self._actions))


class HistoryWrapper(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """Observations become the last `horizon` observations, then the last `horizon` actions."""

    def __init__(self, env: gym.Env, horizon: int = 2) -> None:
        """Wraps an environment with vectors for observations and actions.

        Args:
            env: The environment; its own spaces stay as they are.
            horizon: How many steps to show.

        Raises:
            ConfigError: Observations or actions are no vectors, or `horizon` is not positive.
        """
        super().__init__(env)
        self._history = _History(env.observation_space, env.action_space, horizon, "HistoryWrapper")
        self.observation_space = self._history.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Resets the environment; the history holds nothing but the first observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._history.start(observation), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps and returns the history up to now."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._history.add(observation, action), reward, terminated, truncated, info


class HistoryWrapperObsDict(gym.Wrapper[dict[str, Any], np.ndarray, dict[str, Any], np.ndarray]):
    """Like HistoryWrapper, for the entry `observation` of an observation that is a dict."""

    def __init__(self, env: gym.Env, horizon: int = 2) -> None:
        """Wraps an environment whose observation is a dict with the vector `observation`.

        Args:
            env: The environment; its own spaces stay as they are.
            horizon: How many steps to show.

        Raises:
            ConfigError: There is no such entry, it or the action is no vector, or `horizon` is not positive.
        """
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, spaces.Dict) or "observation" not in space.spaces:
            raise ConfigError(f"HistoryWrapperObsDict needs a dict with the key 'observation', the environment has {space}")
        self._history = _History(space["observation"], env.action_space, horizon, "HistoryWrapperObsDict")
        # The order of the keys is the order in which a policy concatenates their features.
        parts = [(key, self._history.space if key == "observation" else part) for key, part in space.spaces.items()]
        self.observation_space = spaces.Dict(parts)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets the environment; the history holds nothing but the first observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        return {**observation, "observation": self._history.start(observation["observation"])}, info

    def step(self, action: np.ndarray) -> tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps and returns the observation with the history up to now."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        history = self._history.add(observation["observation"], action)
        return {**observation, "observation": history}, reward, terminated, truncated, info
