"""Settings are filled up with defaults, and going on with a run changes none that matter."""

import pytest
import yaml

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import TRAIN_DEFAULTS, resumed_arguments, train_arguments


def test_filling_up_keeps_what_is_given():
    filled = train_arguments({"seed": 3, "mine": "kept"})
    assert filled == {**train_arguments(), "seed": 3, "mine": "kept"}
    assert list(filled)[: len(TRAIN_DEFAULTS)] == list(TRAIN_DEFAULTS)


def test_settings_survive_plain_yaml():
    assert yaml.safe_load(yaml.safe_dump(train_arguments())) == train_arguments()


def test_each_call_owns_its_lists():
    train_arguments()["wandb_tags"].append("x")
    assert train_arguments()["wandb_tags"] == []


def test_resume_takes_the_run_s_settings_and_the_few_that_may_change():
    saved = train_arguments({"algo": "sac", "env": "Pendulum-v1", "seed": 5, "n_timesteps": 100, "dry_run": True})
    given = {"resume": "logs/sac/Pendulum-v1_1", "n_timesteps": 500, "device": "cpu", "env": "Pendulum-v1"}
    assert resumed_arguments(saved, given, "x") == {
        **saved,
        "resume": "logs/sac/Pendulum-v1_1",
        "n_timesteps": 500,
        "device": "cpu",
        "dry_run": False,
    }


def test_n_0_keeps_the_run_s_total():
    assert resumed_arguments(train_arguments({"n_timesteps": 100}), {"n_timesteps": 0}, "x")["n_timesteps"] == 100


@pytest.mark.parametrize("given", [{"env": "CartPole-v1"}, {"seed": 6}, {"n_envs": 4}])
def test_what_contradicts_the_run_is_refused(given):
    saved = train_arguments({"env": "Pendulum-v1", "seed": 5})
    with pytest.raises(ConfigError, match=f"--{next(iter(given)).replace('_', '-')} .* contradicts --resume: the run logs/1"):
        resumed_arguments(saved, given, "logs/1")


def test_hyperparameters_given_anew_are_refused():
    with pytest.raises(ConfigError, match="-params with --resume: the run logs/1 keeps its own"):
        resumed_arguments(train_arguments({"seed": 5}), {"hyperparams": {"gamma": 0.9}}, "logs/1")
