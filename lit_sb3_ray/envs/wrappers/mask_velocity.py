"""Hiding velocities, which turns a task into one that needs memory."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from lit_sb3_ray.errors import unknown

VELOCITY_INDICES: dict[str, tuple[int, ...]] = {
    "CartPole-v1": (1, 3),
    "MountainCar-v0": (1,),
    "MountainCarContinuous-v0": (1,),
    "Pendulum-v1": (2,),
    "LunarLander-v3": (2, 3, 5),
    "LunarLanderContinuous-v3": (2, 3, 5),
}
"""Where the velocities stand in each environment's observation."""


class MaskVelocityWrapper(gym.ObservationWrapper[np.ndarray, Any, np.ndarray]):
    """Sets the velocities in the observation to zero; knows the environments of `VELOCITY_INDICES`."""

    def __init__(self, env: gym.Env) -> None:
        """Looks up which entries of the observation are velocities.

        Args:
            env: One of the known environments, wrapped or not.

        Raises:
            ConfigError: The environment is not among them.
        """
        super().__init__(env)
        spec = env.unwrapped.spec
        env_id = str(env.unwrapped) if spec is None else spec.id
        if env_id not in VELOCITY_INDICES:
            raise unknown("environment for MaskVelocityWrapper", env_id, VELOCITY_INDICES)
        self.mask = np.ones(env.observation_space.shape or (), env.observation_space.dtype)
        self.mask[list(VELOCITY_INDICES[env_id])] = 0

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Returns the observation, same shape and dtype, without its velocities."""
        masked: np.ndarray = observation * self.mask
        return masked
