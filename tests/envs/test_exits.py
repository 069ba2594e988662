"""An environment that calls `sys.exit` has failed, and does not end a training as if all were well."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from vec.fault_envs import Exiting, ExitingConstruction, ExitingReset

import tiny_envs  # noqa: F401  (registers TinyExiting-v0)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.envs.exits import ExitError, no_exit
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.vec.failures import EnvError
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

SHORT = ["--env", "TinyExiting-v0", "-n", "64", "--device", "cpu", "--num-threads", "1", "--eval-freq", "-1", "--seed", "3"]


class Leaving(BaseCallback):
    def _on_step(self):
        sys.exit()


def test_a_constructor_that_exits_is_bad_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SHORT, "--env-kwargs", "what:build", "-params", "n_steps:8"]) == 2
    assert "environment 'TinyExiting-v0' cannot be built: SystemExit: 0" in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["reset", "step"])
def test_a_training_whose_env_exits_has_failed(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExitError, match=rf"the environment's {what} has called sys.exit\(0\)"):
        cli.main(["train", *SHORT, "--env-kwargs", f"what:{what}", "-params", "n_steps:8"])


def test_a_training_whose_callback_exits_has_failed(tmp_path):
    given = {"eval_freq": -1, "verbose": 0, "hyperparams": {"n_envs": 1}, "callbacks": [Leaving()]}
    manager = ExperimentManager(None, "a2c", "CartPole-v1", str(tmp_path), **given)
    with pytest.raises(ExitError, match=r"a callback, a wrapper or an environment has called sys.exit\(\)"):
        manager.learn(manager.setup_experiment())


def test_what_measures_an_env_before_training_goes_on(tmp_path, caplog):
    """`auto` leaves it to the training to meet the same again."""
    given = {"eval_freq": -1, "verbose": 0, "n_envs": 4, "env_kwargs": {"what": "step"}, "hyperparams": {"n_steps": 8}}
    caplog.set_level("INFO", logger="lit_sb3_ray")
    manager = ExperimentManager(None, "ppo", "TinyExiting-v0", str(tmp_path), envs_per_actor=2, **given)
    manager.setup_experiment().get_env().close()
    assert "the environment cannot be measured" in caplog.text
    assert "vec_env auto: envs_per_actor has no effect, since no environment is in an actor" in caplog.text


def test_the_monitor_stays_one_of_sb3():
    env = EnvSpec("TinyExiting-v0").make(seed=0)
    assert isinstance(env, Monitor)
    env.reset()
    assert env.step(env.action_space.sample())[1] == 1.0
    with pytest.raises(ConfigError, match="cannot be built"):
        EnvSpec("TinyExiting-v0", {"what": "build"}).make()


def test_ray_ends_its_workers_by_an_exit_of_its_own():
    ending = SystemExit(15)
    ending.ray_terminate_msg = "The worker got a SIGTERM."
    with pytest.raises(SystemExit), no_exit("nobody"):
        raise ending


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("transport", ["shared", "calls"])
def test_in_actors_it_is_told_with_the_env_s_index(transport):
    def venv(env_class):
        return RayVecEnv([partial(env_class, index, at=2, who=1) for index in range(2)], envs_per_actor=1, transport=transport)

    with pytest.raises(EnvError, match="environment 1 failed in its construction: SystemExit: 0"):
        venv(ExitingConstruction)
    with pytest.raises(EnvError, match="environment 1 failed in reset: SystemExit: 0"):
        venv(ExitingReset).reset()
    stepped = venv(Exiting)
    stepped.reset()
    stepped.step(np.zeros(2, np.int64))
    with pytest.raises(EnvError, match="environment 1 failed in step: SystemExit: 0"):
        stepped.step(np.zeros(2, np.int64))
