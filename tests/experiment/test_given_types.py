"""What an experiment is given from Python is refused by its name where it has the wrong type, and nothing is made then."""

from __future__ import annotations

import numpy as np
import pytest

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.errors import ConfigError


def experiment(folder, **given):
    settings = {"algo": "ppo", "env_id": "CartPole-v1", "log_folder": str(folder / "logs"), "eval_freq": -1, "verbose": 0}
    return ExperimentManager(**{"args": None, **settings, **given})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("args", "x", "a Namespace, a dict or None, not 'x'"),
        ("algo", None, "a string, not None"),
        ("env_id", 3, "a string, not 3"),
        ("log_folder", None, "a path, not None"),
        ("log_folder", "", "a path, not ''"),
        ("n_timesteps", "100", "a whole number, not '100'"),
        ("n_timesteps", 1.5, "a whole number, not 1.5"),
        ("n_timesteps", True, "a whole number, not True"),
        ("eval_freq", None, "a whole number, not None"),
        ("eval_freq", float("nan"), "a whole number, not nan"),
        ("eval_freq", float("inf"), "a whole number, not inf"),
        ("seed", -1, "a whole number from 0 to 4294967295, not -1"),
        ("seed", 2**32, "a whole number from 0 to 4294967295"),
        ("n_envs", "2", "a whole number, not '2'"),
        ("n_envs", 10**30, "at most 100000, not 1000"),
        ("n_eval_envs", 10**6, "at most 100000, not 1000000"),
        ("n_eval_episodes", 10**30, "at most 9007199254740992, not 1000"),
        ("env_timeout", 10**30, "a positive number of seconds, not 1000"),
        ("env_cpus", "half", "a number or None, not 'half'"),
        ("env_timeout", True, "a number or None, not True"),
        ("fast", "no", "True or False, not 'no'"),
        ("async_eval", None, "True or False, not None"),
        ("hyperparams", ["n_steps:8"], "a dict with strings as keys"),
        ("env_kwargs", {1: 2}, "a dict with strings as keys"),
        ("trained_agent", 3, "a path, not 3"),
        ("device", None, "a device, not None"),
        ("callbacks", "x", "a list, not 'x'"),
        ("callbacks", 3, "a list, not 3"),
        ("gym_packages", "my_envs", "a list, not 'my_envs'"),
        ("gym_packages", [3], r"a list of names, not \[3\]"),
        ("loggers", "csv", "a list, not 'csv'"),
        ("loggers", [["csv"]], r"a list of names or Lightning loggers, not \[\['csv'\]\]"),
        ("ray_settings", {"address": "auto"}, "of RaySettings, not"),
        ("study_options", 3, "of StudyOptions, not 3"),
        ("wandb", "me", "of WandbSettings, not 'me'"),
    ],
)
def test_a_wrong_type_is_named(name, value, told, tmp_path):
    with pytest.raises(ConfigError, match=f"^{name} must be {told}"):
        experiment(tmp_path, **{name: value})
    assert list(tmp_path.iterdir()) == []


def test_what_stands_for_the_right_type_is_taken(tmp_path):
    manager = experiment(
        tmp_path,
        log_folder=tmp_path / "logs",
        n_timesteps=1e5,
        eval_freq=np.int64(10),
        seed=np.uint32(3),
        n_envs=np.int64(2),
        verbose=False,
        fast=np.bool_(False),
        callbacks=None,
        gym_packages=None,
        loggers=None,
        tensorboard_log=None,
        trained_agent=None,
        uuid_str=None,
    )
    numbers = (manager.n_timesteps, manager.eval_freq, manager.seed, manager.given_n_envs, manager.verbose)
    assert numbers == (100_000, 10, 3, 2, 0)
    assert all(type(number) is int for number in numbers)
    assert (manager.callbacks, manager.loggers, manager.gym_packages) == ([], [], ())
    assert (manager.tensorboard_log, manager.trained_agent, manager.uuid_str) == ("", "", "")


def test_a_budget_beyond_all_counting_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="n_timesteps must be at most 9007199254740992, not 1000000000000000000000000000000"):
        experiment(tmp_path, n_timesteps=10**30)


def test_a_run_is_gone_on_with_as_what_it_was(tmp_path):
    figures = {"n_steps": 8, "batch_size": 8, "n_epochs": 1}
    run = experiment(tmp_path, n_timesteps=16, seed=3, n_envs=2, hyperparams=figures, device="cpu")
    run.learn(run.setup_experiment())

    def again(**changed):
        given = {"n_timesteps": 32, "seed": 3, "n_envs": 2, "device": "cpu"}
        return experiment(tmp_path, resume=run.save_path, **{**given, **changed})

    for name, value in {"algo": "a2c", "seed": 4, "n_envs": None, "env_kwargs": {"x": 1}}.items():
        with pytest.raises(ConfigError, match=f"^{name} .* contradicts resume: the run .*CartPole-v1_1 has "):
            again(**{name: value})
    with pytest.raises(ConfigError, match=r"^env 'Acrobot-v1' contradicts resume: the run .* has 'CartPole-v1'"):
        again(env_id="Acrobot-v1")
    resumed = again()
    model = resumed.setup_experiment()
    resumed.learn(model)
    assert model.num_timesteps == 32
