"""The registry is open: a class by its path, or under a name of its own, is trained and played as the built-in ones are."""

from __future__ import annotations

import logging

import own_algorithms
import pytest
import torch
import yaml
from own_algorithms import OwnPPO
from stable_baselines3 import PPO

from lit_sb3_ray import ALGOS, ExperimentManager, load_run
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.config.algorithms import nearest_built_in
from lit_sb3_ray.lit.iteration import is_driven

SHORT = ["-n", "64", "--eval-freq", "32", "--eval-episodes", "1", "--device", "cpu", "--num-threads", "1", "--seed", "1"]
SMALL = ["-params", "n_steps:16", "n_envs:2"]


@pytest.fixture
def own_name():
    ALGOS["own"] = OwnPPO
    yield "own"
    del ALGOS["own"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("registry") / "logs"
    for algo in ("own_algorithms:OwnPPO", "ppo"):
        assert cli.main(["train", "--algo", algo, "-f", str(folder), *SHORT, *SMALL]) == 0
    return folder


def test_a_class_by_its_path_has_a_run_folder_and_says_so_in_the_settings(logs):
    run = logs / "own_algorithms-OwnPPO" / "CartPole-v1_1"
    assert {"CartPole-v1.zip", "best_model.zip", "evaluations.npz"} <= {path.name for path in run.iterdir()}
    assert yaml.safe_load((run / "CartPole-v1" / "args.yml").read_text())["algo"] == "own_algorithms:OwnPPO"
    model, env = load_run(run)
    env.close()
    assert type(model) is OwnPPO
    assert is_driven(model)


def test_a_subclass_takes_its_base_s_hyperparameters_and_learns_the_same(logs):
    own, _ = load_run(logs / "own_algorithms-OwnPPO" / "CartPole-v1_1")
    base, _ = load_run(logs / "ppo" / "CartPole-v1_1")
    for mine, theirs in zip(own.policy.parameters(), base.policy.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_enjoy_plays_it(logs, capsys):
    words = ["--algo", "own_algorithms:OwnPPO", "-f", str(logs), "--no-render", "-n", "100", "--device", "cpu"]
    assert cli.main(["enjoy", *words, "--load-best"]) == 0
    assert "Mean reward" in capsys.readouterr().out


def test_resume_goes_on_with_it(logs, capsys):
    run = logs / "own_algorithms-OwnPPO" / "CartPole-v1_1"
    assert cli.main(["train", "--resume", str(run), "-n", "128", "--verbose", "0"]) == 0
    assert load_run(run)[0].num_timesteps == 128


def test_whose_hyperparameters_are_taken_is_one_line_of_the_log(tmp_path, caplog, own_name):
    with caplog.at_level(logging.INFO, "lit_sb3_ray.config"):
        ExperimentManager(None, own_name, "CartPole-v1", str(tmp_path)).read_hyperparameters()
    assert [record.getMessage() for record in caplog.records] == [
        "own descends from ppo: taking its hyperparameters (hyperparams/ppo.yml); --conf-file names others"
    ]


def test_a_name_of_its_own_is_trained_and_played(tmp_path, own_name):
    options = {"hyperparams": {"n_steps": 16, "n_envs": 2}, "n_timesteps": 64, "eval_freq": -1, "verbose": 0}
    manager = ExperimentManager(None, own_name, "CartPole-v1", str(tmp_path), **options)
    model = manager.setup_experiment()
    manager.learn(model)
    manager.save_trained_model(model)
    assert manager.run.path == tmp_path / "own" / "CartPole-v1_1"
    assert type(load_run(manager.run.path)[0]) is OwnPPO


def test_a_built_in_name_can_be_given_to_another_class(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGOS, "ppo", "own_algorithms:OwnPPO")
    manager = ExperimentManager(None, "ppo", "CartPole-v1", str(tmp_path), verbose=0)
    assert type(manager.setup_experiment()) is OwnPPO


@pytest.mark.parametrize(
    ("algo", "nearest"),
    [
        ("ddpg", "ddpg"),
        ("stable_baselines3:TD3", "td3"),
        ("sb3_contrib.ppo_recurrent:RecurrentPPO", "ppo_lstm"),
        ("own_algorithms:LoudPPO", "ppo"),
        ("own_algorithms:RandomSearch", None),
    ],
)
def test_nearest_built_in(algo, nearest):
    assert nearest_built_in(algo) == nearest


class Unplaceable(PPO):
    def __init__(self, policy, env, verbose=0, seed=None):
        super().__init__(policy, env, verbose=verbose, seed=seed)


@pytest.mark.parametrize(
    ("algo", "part"),
    [
        ("own_algorithms:OwnPPPO", "did you mean 'OwnPPO'"),
        ("own_algorithm:OwnPPO", "own_algorithm"),
        ("own_algorithms:np", "no algorithm class"),
        ("own_algorithms:LinearPolicy", "it has no learn, save, load, get_env, get_vec_normalize_env, set_logger"),
        ("own_algorithms:Unplaceable", "its constructor does not take device"),
        ("own_algorithms:HillClimbing", "name a file with --conf-file"),
    ],
)
def test_what_is_no_algorithm_is_one_line_and_leaves_nothing(algo, part, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(own_algorithms, "Unplaceable", Unplaceable, raising=False)
    assert cli.main(["train", "--algo", algo, "-f", str(tmp_path / "logs"), *SHORT]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "logs").exists()


def test_a_hyperparameter_that_the_class_does_not_know_is_named(tmp_path, capsys):
    (tmp_path / "own.yml").write_text("default: {policy: LinearPolicy, n_timesteps: 20, noize: 1.0}")
    words = ["--algo", "own_algorithms:HillClimbing", "--conf-file", str(tmp_path / "own.yml"), "-f", str(tmp_path / "logs")]
    assert cli.main(["train", *words]) == 2
    err = capsys.readouterr().err
    assert "unknown HillClimbing hyperparameter 'noize'" in err
    assert "did you mean 'noise'" in err


def test_a_conf_file_goes_before_the_base_s(tmp_path):
    (tmp_path / "own.yml").write_text("default: {policy: MlpPolicy, n_timesteps: 20, n_steps: 7}")
    manager = ExperimentManager(
        None, "own_algorithms:OwnPPO", "CartPole-v1", str(tmp_path), config=str(tmp_path / "own.yml"), verbose=0
    )
    model = manager.setup_experiment()
    assert (model.n_steps, model.gamma, model.n_envs) == (7, 0.99, 1)
