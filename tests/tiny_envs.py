"""Small environments whose every number can be worked out by hand; importing this module registers them.

`TinyCount-v0`, `TinyGoal-v0`, `TinyImage-v0`, `TinyMask-v0`, `TinyBroken-v0`, `TinyMasked-v0`, `TinyFailing-v0`,
`TinyTelling-v0`, `TinyDrawn-v0`, `TinyUnlucky-v0`, `TinyExiting-v0`.
"""

from __future__ import annotations

import os
import signal
import sys

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class CountEnv(gym.Env):
    """Step `t` (from 1) gives the observation `[t, offset]`, the reward `t`, and success from step `success_at` on.

    The episode terminates after `length` steps. `offset` is drawn from the environment's generator at reset, unless
    `options={"offset": x}` sets it. What arrived is kept in `actions`, `seeds` and `options`.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (gymnasium's own form)

    def __init__(self, length=5, success_at=3, render_mode=None):
        self.length = length
        self.success_at = success_at
        self.render_mode = render_mode
        self.observation_space = spaces.Box(-1.0, 100.0, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.actions, self.seeds, self.options = [], [], []

    def _observation(self):
        return np.array([self.count, self.offset], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.options.append(options)
        self.count = 0
        self.offset = (options or {}).get("offset", self.np_random.random())
        return self._observation(), {}

    def step(self, action):
        self.actions.append(np.array(action))
        self.count += 1
        info = {"is_success": self.count >= self.success_at}
        return self._observation(), float(self.count), self.count >= self.length, False, info

    def render(self):
        return np.zeros((4, 4, 3), np.uint8)


class GoalEnv(gym.Env):
    """A point on a line is pushed towards a goal; the reward is minus the distance, success within 0.1."""

    def __init__(self, length=10):
        self.length = length
        line = spaces.Box(-10.0, 10.0, (1,), np.float32)
        self.observation_space = spaces.Dict({"observation": line, "achieved_goal": line, "desired_goal": line})
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _observation(self):
        return {"observation": self.position.copy(), "achieved_goal": self.position.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        self.position = np.zeros(1, np.float32)
        self.goal = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self._observation(), {}

    def step(self, action):
        self.count += 1
        self.position = np.clip(self.position + 0.2 * np.asarray(action, np.float32), -10, 10).astype(np.float32)
        reward = float(self.compute_reward(self.position, self.goal, {}))
        info = {"is_success": float(reward > -0.1)}
        return self._observation(), reward, False, self.count >= self.length, info

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.abs(achieved_goal - desired_goal).sum(axis=-1)


class ImageEnv(gym.Env):
    """A picture of bytes, channels last, all of the brightness `t` at step `t`."""

    def __init__(self, size=36, channels=3, length=6):
        self.observation_space = spaces.Box(0, 255, (size, size, channels), np.uint8)
        self.action_space = spaces.Discrete(2)
        self.length = length

    def _observation(self):
        return np.full(self.observation_space.shape, self.count, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._observation(), {}

    def step(self, action):
        self.count += 1
        return self._observation(), 1.0, self.count >= self.length, False, {}


class MaskEnv(gym.Env):
    """Of four actions only `t % 4` and its successor are allowed at step `t`; `allowed` tells which, under that name only."""

    def __init__(self, length=8):
        self.observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(4)
        self.length = length

    def allowed(self):
        return np.isin(np.arange(4), [self.count % 4, (self.count + 1) % 4])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.allowed().astype(np.float32), {}

    def step(self, action):
        reward = float(self.allowed()[action])
        self.count += 1
        return self.allowed().astype(np.float32), reward, False, self.count >= self.length, {}


class BrokenEnv(gym.Env):
    """From its third step on `what` (`reward` or `observation`) is NaN; the actions change nothing."""

    def __init__(self, what="reward", box=False, length=8):
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32) if box else spaces.Discrete(2)
        self.what, self.length = what, length

    def _value(self, what):
        return np.nan if what == self.what and self.count >= 3 else 0.5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.full(2, 0.5, np.float32), {}

    def step(self, action):
        self.count += 1
        observation = np.full(2, self._value("observation"), np.float32)
        return observation, self._value("reward"), self.count >= self.length, False, {}


class MaskedEnv(MaskEnv):
    """`MaskEnv` under the name that MaskablePPO asks for."""

    def action_masks(self):
        return self.allowed()


class FailingEnv(CountEnv):
    """In step `at`, counted over all episodes, it raises an error or kills its process; with a file `once` only once.

    With `what="build"` it cannot be built.
    """

    def __init__(self, at=0, what="raise", once=None, **kwargs):
        super().__init__(**kwargs)
        self.left, self.what, self.once = at, what, once
        if what == "build":
            raise ValueError("no such simulator")

    def step(self, action):
        self.left -= 1
        if self.left == 0 and not (self.once and os.path.exists(self.once)):
            if self.once:
                open(self.once, "w").close()
            if self.what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("out of order")
        return super().step(action)


class TellingEnv(CountEnv):
    """Rewards each step with the number of torch's threads, and with a hundred more where a GPU may be seen."""

    def step(self, action):
        import torch

        observation, _, terminated, truncated, info = super().step(action)
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
        return observation, float(torch.get_num_threads() + (0 if hidden else 100)), terminated, truncated, info


class DrawnEnv(CountEnv):
    """Draws a plain picture of `colour`, with a white bar on the left as high as the count of steps; 20 of them a second.

    `draws` may be what it draws instead: `nothing`, `grey`, `error`. In step `signal_at`, counted over all episodes, it sends
    its process `signum`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (gymnasium's own form)

    def __init__(self, colour=(0, 0, 160), height=48, width=64, draws="picture", signal_at=0, signum=signal.SIGINT, **kwargs):
        super().__init__(**kwargs)
        self.picture = np.full((height, width, 3), colour, np.uint8)
        self.draws, self.left, self.signum = draws, signal_at, signum

    def step(self, action):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.signum)
        return super().step(action)

    def render(self):
        if self.draws == "error":
            raise OSError("no light")
        if self.draws == "nothing":
            return None
        picture = self.picture.copy()
        picture[: 4 * self.count, :8] = 255
        return picture[:, :, 0] if self.draws == "grey" else picture


class UnluckyEnv(CountEnv):
    """It cannot step once it has been reset with the seed `unlucky`; with `what="exit"` it ends its process then."""

    def __init__(self, unlucky=-1, what="raise", **kwargs):
        super().__init__(**kwargs)
        self.unlucky, self.what = unlucky, what

    def step(self, action):
        if self.unlucky in self.seeds:
            raise SystemExit(3) if self.what == "exit" else ValueError("boom")
        return super().step(action)


class ExitingEnv(CountEnv):
    """It calls `sys.exit`: with `what` in its `build`, in the second `reset`, or in the third `step`."""

    def __init__(self, what="", **kwargs):
        super().__init__(**kwargs)
        self.what = what
        if what == "build":
            sys.exit(0)

    def reset(self, *, seed=None, options=None):
        if self.what == "reset" and self.seeds:
            sys.exit(0)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        if self.what == "step" and self.count == 2:
            sys.exit(0)
        return super().step(action)


for _name, _class in {
    "TinyCount": CountEnv,
    "TinyGoal": GoalEnv,
    "TinyImage": ImageEnv,
    "TinyMask": MaskEnv,
    "TinyBroken": BrokenEnv,
    "TinyMasked": MaskedEnv,
    "TinyFailing": FailingEnv,
    "TinyTelling": TellingEnv,
    "TinyDrawn": DrawnEnv,
    "TinyUnlucky": UnluckyEnv,
    "TinyExiting": ExitingEnv,
}.items():
    if f"{_name}-v0" not in gym.registry:
        gym.register(id=f"{_name}-v0", entry_point=f"{__name__}:{_class.__name__}")
