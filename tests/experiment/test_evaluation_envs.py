"""Evaluation envs with arguments of their own: what no policy of the training ones could play is refused before training."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

import tiny_envs
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluation_envs import check_same_form

LINE, WIDE = spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Box(-1.0, 1.0, (3,), np.float32)
FAR, BYTES = spaces.Box(-9.0, 9.0, (2,), np.float64), spaces.Box(0, 255, (2,), np.uint8)
TWO, THREE = spaces.Discrete(2), spaces.Discrete(3)
WORDS = ["train", "--env", "TinyImage-v0", "-n", "32", "--device", "cpu", "--num-threads", "1", "--seed", "3"]
FIGURES = ["-params", "n_steps:16", "batch_size:16", "n_epochs:1", "n_envs:1", "normalize:False"]


def env(observations, actions=TWO):
    def make():
        made = tiny_envs.CountEnv()
        made.observation_space, made.action_space = observations, actions
        return made

    return DummyVecEnv([make])


@pytest.mark.parametrize(
    ("training", "evaluation"),
    [
        ((LINE,), (LINE,)),
        ((LINE,), (FAR,)),
        ((LINE,), (BYTES,)),
        ((spaces.Dict({"a": LINE, "b": TWO}),), (spaces.Dict({"a": FAR, "b": TWO}),)),
        ((LINE, LINE), (LINE, FAR)),
    ],
)
def test_other_bounds_are_let_pass(training, evaluation):
    check_same_form(env(*training), env(*evaluation))


@pytest.mark.parametrize(
    ("training", "evaluation", "told"),
    [
        ((LINE,), (WIDE,), r"observations of Box\(3,\) of float32, and training environments of Box\(2,\) of float32"),
        ((BYTES,), (LINE,), r"observations of Box\(2,\) of float32, and training environments of Box\(2,\) of uint8"),
        ((LINE, TWO), (LINE, THREE), r"actions of Discrete\(3\), and training environments of Discrete\(2\)"),
        ((LINE, TWO), (LINE, LINE), r"actions of Box\(2,\) of float32"),
        ((spaces.Dict({"a": LINE}),), (spaces.Dict({"b": LINE}),), r"observations of Dict\(b\)"),
        ((spaces.Dict({"a": LINE}),), (spaces.Dict({"a": WIDE}),), r"observations of Dict\(a\)"),
    ],
)
def test_another_form_is_named(training, evaluation, told):
    with pytest.raises(ConfigError, match=f"--eval-env-kwargs: evaluation environments have {told}"):
        check_same_form(env(*training), env(*evaluation))


def test_a_command_refuses_it_before_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*WORDS, "--eval-freq", "16", "--eval-env-kwargs", "size:40", *FIGURES]) == 2
    assert "evaluation environments have observations of Box(3, 40, 40) of uint8" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_nobody_evaluates_is_told_to_be_unused(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*WORDS, "--eval-freq", "-1", "--eval-env-kwargs", "size:40", *FIGURES]) == 0
    assert "--eval-env-kwargs has no effect: there are no evaluations (--eval-freq -1)" in caplog.text
    assert cli.main([*WORDS, "--eval-freq", "-1", "--eval-env-kwargs", "siz:40", *FIGURES]) == 2


@pytest.mark.usefixtures("ray_instance")
def test_for_evaluations_on_the_side_it_is_found_as_early(tmp_path):
    settings = {"eval_freq": 16, "verbose": 0, "device": "cpu", "n_envs": 1, "async_eval": True, "n_timesteps": 32}
    manager = ExperimentManager(None, "ppo", "TinyImage-v0", str(tmp_path), eval_env_kwargs={"size": 40}, **settings)
    with pytest.raises(ConfigError, match=r"evaluation environments have observations of Box\(3, 40, 40\)"):
        manager.setup_experiment()
    assert list(tmp_path.iterdir()) == []


def test_a_study_finds_it_before_its_first_trial(tmp_path):
    settings = {"verbose": 0, "device": "cpu", "n_envs": 1, "optimize_hyperparameters": True, "n_timesteps": 32}
    manager = ExperimentManager(None, "ppo", "TinyImage-v0", str(tmp_path), eval_env_kwargs={"size": 40}, **settings)
    manager.read_hyperparameters()
    with pytest.raises(ConfigError, match=r"evaluation environments have observations of Box\(3, 40, 40\)"):
        manager.try_fit()
