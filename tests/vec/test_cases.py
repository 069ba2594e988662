"""Faults that people have met with other ways to step environments in processes of their own."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import ray
import torch
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from vec.fault_envs import Steady
from vec.processes import ended_within, is_running

from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

pytestmark = pytest.mark.usefixtures("ray_instance")
N_ENVS = 4
ONE_EACH = partial(RayVecEnv, envs_per_actor=1)


def replaced_seeds(seed):
    """Kills the actor of two environments twice; returns the seeds of their resets."""
    venv = RayVecEnv([partial(Steady, index) for index in range(N_ENVS)], envs_per_actor=2)
    try:
        venv.seed(seed)
        venv.reset()
        own = [seeds[-1] for seeds in venv.get_attr("seeds")]
        new = []
        for _ in range(2):
            os.kill(venv.env_method("pid", indices=0)[0], signal.SIGKILL)
            venv.step(np.zeros(N_ENVS, np.int64))
            new += [seeds[-1] for seeds in venv.get_attr("seeds", [0, 1])]
    finally:
        venv.close()
    return own, new


def test_c7_seeds_of_replaced_actors_are_drawn_from_a_seed_sequence_and_shared_by_no_other_run(caplog):
    caplog.set_level("INFO", logger="lit_sb3_ray")
    found = {seed: replaced_seeds(seed) for seed in (0, 1)}
    for seed, (own, new) in found.items():
        assert own == [seed + index for index in range(N_ENVS)]
        expected = [
            int(np.random.SeedSequence([seed, index, loss]).generate_state(1)[0]) for loss in (1, 2) for index in (0, 1)
        ]
        assert new == expected
        assert all(f"gets the seed {each}" in caplog.text for each in new)
    assert len({*found[0][1], *found[1][1]}) == 8


@pytest.mark.parametrize("vec_env_cls", [DummyVecEnv, SubprocVecEnv, ONE_EACH, RayVecEnv])
def test_c8_environments_that_one_factory_builds_start_differently(vec_env_cls):
    venv = vec_env_cls([lambda: gym.make("CartPole-v1")] * N_ENVS)
    try:
        venv.seed(0)
        assert len(np.unique(venv.reset(), axis=0)) == N_ENVS
    finally:
        venv.close()


def test_c5_an_environment_of_a_package_that_only_the_learner_can_find_is_built_in_actors(tmp_path, monkeypatch):
    (tmp_path / "package_of_case_c5.py").write_text(
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "gym.register(id='OfCaseC5-v0', entry_point=CartPoleEnv, max_episode_steps=20)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = EnvSpec("OfCaseC5-v0", packages=("package_of_case_c5",))
    venv = ONE_EACH(spec.factories(2, seed=0))
    try:
        venv.reset()
        assert [spec.id for spec in venv.get_attr("spec")] == ["OfCaseC5-v0"] * 2
    finally:
        venv.close()
    assert "package_of_case_c5" in sys.modules


def test_c6_a_class_that_no_module_has_is_sent_with_what_its_factory_refers_to():
    offset = np.array([3.0, 4.0], np.float32)

    class OfANotebook(Steady):
        def reset(self, *, seed=None, options=None):
            observation, info = super().reset(seed=seed)
            return observation + offset, info

    venv = ONE_EACH([lambda index=index: OfANotebook(index) for index in range(2)])
    try:
        assert venv.reset().tolist() == [[3, 4], [3, 5]]
    finally:
        venv.close()


class Threaded(gym.Env):
    """Computes with a native library that has threads, and in threads of its own."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._compute(), {}

    def step(self, action):
        return self._compute(), 1.0, False, False, {}

    def _compute(self):
        weights = torch.ones(200, 200)
        return np.array([float((weights @ weights)[0, 0])], np.float32)


def test_c3_environments_with_a_threaded_library_step_though_the_learner_has_used_it_before():
    (torch.ones(500, 500) @ torch.ones(500, 500)).sum().item()
    venv = ONE_EACH([Threaded] * 2, step_timeout=60)
    try:
        assert venv.reset().tolist() == [[200]] * 2
        assert venv.step(np.zeros(2, np.int64))[0].tolist() == [[200]] * 2
    finally:
        venv.close()


def learner_class():
    """Makes the class of a trial that steps environments with programs beside them. It is local, so it travels by value."""

    class Learner:
        def open(self):
            """Starts; returns the processes of actors and of their programs."""
            from vec.fault_envs import WithServer

            from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

            self.venv = RayVecEnv([partial(WithServer, index) for index in range(4)], envs_per_actor=2)
            self.venv.reset()
            return {*self.venv.env_method("pid"), *self.venv.get_attr("child")}

        def train(self):
            """Steps for ever."""
            while True:
                self.venv.step(np.zeros(4, np.int64))

    return Learner


def test_j2_a_stopped_trial_leaves_no_actor_no_program_and_its_cpus():
    def free():
        return ray.available_resources().get("CPU", 0.0)

    path = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    learner = ray.remote(num_cpus=1)(learner_class()).options(runtime_env=path).remote()
    pids = ray.get(learner.open.remote())
    assert len(pids) == 6
    assert all(is_running(pid) for pid in pids)
    learner.train.remote()
    ray.kill(learner)
    assert all(ended_within(pid, 20) for pid in pids)
    deadline = time.monotonic() + 20
    while free() < 4:
        assert time.monotonic() < deadline
        ray.get(ray.remote(num_cpus=0)(lambda: None).remote())


def test_c13_sb3s_own_helpers_take_it_as_a_class():
    venv = make_vec_env("CartPole-v1", 2, seed=0, vec_env_cls=RayVecEnv, vec_env_kwargs={"envs_per_actor": 1})
    theirs = make_vec_env("CartPole-v1", 2, seed=0)
    try:
        assert np.array_equal(venv.reset(), theirs.reset())
    finally:
        venv.close()
