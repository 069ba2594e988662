"""Envs for studies: what a trial is worth is a hyperparameter of it, and what befalls it is planned in a file.

`StudyWorth-v0` gives each step `Worth.worth`, which the callback of that name takes from the model's `max_grad_norm`, and a
little more the nearer the action is to 0.5. Its resets draw nothing, and five steps are an episode, so that a training that
goes on from a multiple of five steps is bit for bit one that was never broken off.

`plan.json` in its folder is a list of troubles: `{"role": "train" or "eval", "when": "construct", "reset" or "step", "at": the
env's own step, "what": ...}`. The first of them alone is looked at; it is taken off the list as it happens.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

EPISODE = 5
HANG_S = 120.0


class Worth(BaseCallback):
    """Takes over what the trial is worth."""

    worth = 0.0

    def _on_rollout_start(self):
        Worth.worth = float(self.model.max_grad_norm)

    def _on_step(self):
        return True


class EndsSeedOne(Worth):
    """Ends the training with seed 1 in its second rollout."""

    def _on_step(self):
        return self.model.seed != 1 or self.num_timesteps < 25


class WorthEnv(gym.Env):
    def __init__(self, folder=None, role="train"):
        self.observation_space = spaces.Box(0.0, EPISODE, (1,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.folder = None if folder is None else Path(folder)
        self.role = role
        self.steps = 0
        print(f"a {role} env opens", flush=True)
        self._meet("construct")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        self._meet("reset")
        return self._observation(), {}

    def step(self, action):
        self.count += 1
        self.steps += 1
        reward = Worth.worth + 0.001 * (1.0 - (float(action[0]) - 0.5) ** 2)
        if self._meet("step") == "nan":
            reward = float("nan")
        return self._observation(), reward, self.count >= EPISODE, False, {}

    def _observation(self):
        return np.array([self.count], np.float32)

    def _meet(self, when):
        """Lets the first planned trouble happen if this is its moment."""
        plan = None if self.folder is None else self.folder / "plan.json"
        if plan is None or not plan.exists():
            return None
        first, *rest = json.loads(plan.read_text()) or [None]
        if first is None or (first["role"], first["when"], first.get("at", self.steps)) != (self.role, when, self.steps):
            return None
        write(plan, rest)
        with (self.folder / "met.txt").open("a") as met:
            met.write(f"{first['what']} {os.getpid()}\n")
        return self._suffer(first["what"])

    def _suffer(self, what):
        if what == "error":
            raise ValueError("the joint is broken")
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what.endswith("files"):
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000 if what == "small files" else limit, limit))
        if what == "wait":
            while not (self.folder / "gate").exists():
                time.sleep(0.05)
        if what == "open":
            (self.folder / "gate").touch()
        if what == "no storage":
            (self.folder / "study.log").rename(self.folder / "kept.log")
            (self.folder / "study.log").mkdir()
        if what.startswith("SIG"):
            driver = int((self.folder / "driver.pid").read_text())
            write(self.folder / "children.json", descendants(driver))
            os.kill(driver, getattr(signal, what.split()[0]))
        if what.endswith("hang"):
            time.sleep(HANG_S)
        return what


class GlobalEnv(WorthEnv):
    """A worse-behaved env, whose rewards come from the generators that a whole process shares."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward + random.random() + np.random.random(), *rest


class ChildEnv(WorthEnv):
    """Has a simulator in a process of its own, which `close` ends; `opened.txt` has the numbers of both processes."""

    def __init__(self, folder=None, role="train"):
        super().__init__(folder, role)
        self.simulator = subprocess.Popen(["sleep", "1000"])
        with (self.folder / "opened.txt").open("a") as opened:
            opened.write(f"{os.getpid()} {self.simulator.pid}\n")

    def close(self):
        self.simulator.kill()
        self.simulator.wait()


def write(path, value):
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value))
    partial.replace(path)


def descendants(pid):
    """Numbers of all processes below one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below, found = {pid}, []
    while below:
        below = {child for child, parent in parents.items() if parent in below}
        found += sorted(below)
    return found


for _name, _class in {"StudyWorth-v0": WorthEnv, "StudyGlobal-v0": GlobalEnv, "StudyChild-v0": ChildEnv}.items():
    if _name not in gym.registry:
        gym.register(id=_name, entry_point=_class)
