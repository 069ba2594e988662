"""Environments that take their time; importing this module registers them.

`Slow-v0`, `Hanging-v0`, `Growing-v0`.
"""

from __future__ import annotations

import itertools
import time

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class SlowEnv(gym.Env):
    """Episodes of `length` steps that take `seconds` each, but for the first `fast` of all, which take 2 ms.

    It shows and rewards the step's number.
    """

    def __init__(self, seconds=0.0, length=5, fast=0):
        self.observation_space = spaces.Box(0.0, 1e6, (1,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.seconds = seconds
        self.length = length
        self.fast = fast

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.fast -= 1
        time.sleep(self.seconds if self.fast < 0 else 0.002)
        self.count += 1
        return np.array([self.count], np.float32), float(self.count), self.count >= self.length, False, {}


class HangingEnv(SlowEnv):
    """Hangs for a minute in the step number `at`, counted over all episodes."""

    def __init__(self, at, seconds=0.0, length=5):
        super().__init__(seconds, length)
        self.steps_left = at

    def step(self, action):
        self.steps_left -= 1
        if self.steps_left == 0:
            time.sleep(60)
        return super().step(action)


class GrowingEnv(SlowEnv):
    """Has `short` slow episodes of 5 steps, and then fast ones of `length` steps."""

    def __init__(self, short, seconds, length):
        super().__init__(seconds, 5)
        self.episodes = itertools.count()
        self.short = short
        self.later = length

    def reset(self, *, seed=None, options=None):
        if next(self.episodes) >= self.short:
            self.seconds, self.length = 0.0, self.later
        return super().reset(seed=seed)


for _name, _class in {"Slow": SlowEnv, "Hanging": HangingEnv, "Growing": GrowingEnv}.items():
    if f"{_name}-v0" not in gym.registry:
        gym.register(id=f"{_name}-v0", entry_point=f"{__name__}:{_class.__name__}")
