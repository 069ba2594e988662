"""Spaces of every kind, and an environment that draws its observations from any of them. Importable by name in env actors."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium import spaces

OBSERVATIONS = {
    "vector": lambda: spaces.Box(-1.0, 1.0, (3,), np.float32),
    "float64": lambda: spaces.Box(-1.0, 1.0, (2, 2), np.float64),
    "image": lambda: spaces.Box(0, 255, (36, 36, 3), np.uint8),
    "bytes": lambda: spaces.Box(-100, 100, (5,), np.int8),
    "discrete": lambda: spaces.Discrete(7, start=-2),
    "multi_discrete": lambda: spaces.MultiDiscrete([3, 4, 5]),
    "multi_binary": lambda: spaces.MultiBinary((2, 3)),
    "dict": lambda: spaces.Dict(
        {
            "picture": spaces.Box(0, 255, (3, 8, 8), np.uint8),
            "number": spaces.Discrete(5),
            "bits": spaces.MultiBinary(4),
            "vector": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        }
    ),
    "tuple": lambda: spaces.Tuple([spaces.Discrete(3), spaces.Box(0.0, 1.0, (2,), np.float32)]),
}
ACTIONS = {
    "discrete": lambda: spaces.Discrete(4),
    "box": lambda: spaces.Box(-1.0, 1.0, (2,), np.float32),
    "box64": lambda: spaces.Box(-1.0, 1.0, (1, 2), np.float64),
    "multi_discrete": lambda: spaces.MultiDiscrete([3, 2]),
    "multi_binary": lambda: spaces.MultiBinary(3),
}


class Drawing(gym.Env):
    """Everything is drawn from the environment's generator: observations, rewards, ends, infos. Rewards depend on actions."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012 (gymnasium's own form)

    def __init__(self, observation="vector", action="discrete", render_mode=None, infos=True):
        self.observation_space = OBSERVATIONS[observation]()
        self.action_space = ACTIONS[action]()
        self.render_mode = render_mode
        self.infos = infos
        self.level = 0
        self.seeds, self.options = [], []
        self.last_action = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.options.append(options)
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        info = {"start": float(self.np_random.random())} if self.np_random.random() < 0.5 else {}
        return self.observation_space.sample(), info

    def step(self, action):
        self.last_action = action
        luck = self.np_random.random(4)
        info = {"luck": luck[3], "more": luck.copy()} if self.infos and luck[0] < 0.3 else {}
        reward = float(luck[1] + np.sum(action))
        return self.observation_space.sample(), reward, bool(luck[2] < 0.05), bool(luck[3] < 0.05), info

    def render(self):
        return self.np_random.integers(0, 255, (6, 8, 3)).astype(np.uint8)

    def add(self, number, *, times=1):
        return self.level + number * times

    def fail(self):
        raise ValueError("no such thing")

    def big(self, size):
        return np.arange(size)


class Shell(gym.Wrapper):
    """A wrapper with an attribute of its own."""

    inner_name = "shell"


def build(observation="vector", action="discrete", **kwargs):
    """Builds a wrapped `Drawing`."""
    return Shell(Drawing(observation, action, **kwargs))


class Masked(gym.Env):
    """Of four actions two are allowed at each step; `action_masks` tells which."""

    def __init__(self, render_mode=None):
        self.observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(4)

    def action_masks(self):
        return np.isin(np.arange(4), [self.count % 4, (self.count + 1) % 4])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(4))
        return self.action_masks().astype(np.float32), {}

    def step(self, action):
        assert self.action_masks()[action]
        reward = float(action == self.count % 4)
        self.count += 1
        return self.action_masks().astype(np.float32), reward, False, self.count >= 12, {}
