"""Environments that fail on purpose. Importable by name in env actors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Steady(gym.Env):
    """Counts steps; observation `[count, index]`. Subclasses fail in `misbehave`, which knows the count."""

    def __init__(self, index, at=-1, who=0, flag=None):
        self.index, self.at, self.who, self.flag = index, at, who, flag
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.count = 0
        self.level = 0
        self.seeds = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.count = 0
        return np.array([0, self.index], np.float32), {}

    def step(self, action):
        self.count += 1
        if self.index == self.who and self.count == self.at:
            self.misbehave()
        return np.array([self.count, self.index], np.float32), 1.0, False, False, {}

    def misbehave(self):
        """Does nothing here."""

    def pid(self):
        return os.getpid()

    def niceness(self):
        return os.getpriority(os.PRIO_PROCESS, 0)

    def environment(self, name):
        return os.environ.get(name)


class Raising(Steady):
    def misbehave(self):
        raise ValueError("boom")


class Killed(Steady):
    """Its process is killed once: the file `flag` tells that it was."""

    def misbehave(self):
        if not os.path.exists(self.flag):
            open(self.flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)


class Stuck(Steady):
    """Never returns, once."""

    def misbehave(self):
        if not os.path.exists(self.flag):
            open(self.flag, "w").close()
            threading.Event().wait()


class CrashingAtReset(Steady):
    def reset(self, *, seed=None, options=None):
        if self.index == self.who:
            os._exit(9)
        return super().reset(seed=seed, options=options)


class FailingConstruction(Steady):
    def __init__(self, index, **kwargs):
        super().__init__(index, **kwargs)
        if index == self.who:
            raise RuntimeError("no simulator here")


class Exiting(Steady):
    def misbehave(self):
        sys.exit(0)


class ExitingReset(Steady):
    def reset(self, *, seed=None, options=None):
        if self.index == self.who:
            sys.exit(0)
        return super().reset(seed=seed, options=options)


class ExitingConstruction(Steady):
    def __init__(self, index, **kwargs):
        super().__init__(index, **kwargs)
        if index == self.who:
            sys.exit(0)


class FailingClose(Steady):
    def close(self):
        if self.index == self.who:
            raise OSError("will not")


def _sleep_for_ever():
    threading.Event().wait()


class WithChild(Steady):
    """Starts a process of its own, which it never ends; the child holds everything that a fork inherits."""

    def __init__(self, index, **kwargs):
        super().__init__(index, **kwargs)
        self.process = multiprocessing.get_context("fork").Process(target=_sleep_for_ever)
        self.process.start()
        self.child = self.process.pid


class WithServer(Steady):
    """Starts a program in a session of its own, as simulators do, and never ends it."""

    def __init__(self, index, **kwargs):
        super().__init__(index, **kwargs)
        self.process = subprocess.Popen(["sleep", "100000"], start_new_session=True)
        self.child = self.process.pid


class StuckWithServer(WithServer):
    """Never returns, once; its program runs on."""

    def misbehave(self):
        if not os.path.exists(self.flag):
            open(self.flag, "w").close()
            threading.Event().wait()


class Unpicklable(Steady):
    """Its infos hold something that cannot be sent, and so does what `lock` returns."""

    def step(self, action):
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"lock": threading.Lock()}

    def lock(self):
        return threading.Lock()
