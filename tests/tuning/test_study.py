"""Studies run for real, with tiny budgets: what trials do, what ends them, and what is left afterwards."""

import argparse
import logging
import os
import signal
import warnings

import gymnasium as gym
import optuna
import pandas as pd
import pytest
import yaml
from optuna.trial import TrialState

import tiny_envs
from lit_sb3_ray import ExperimentManager, run_study
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.tuning.storage import open_study
from lit_sb3_ray.tuning.study import TRACEBACK

NAME = "s"
RETURN = 15.0
"""What an episode of TinyCount-v0 gives, whatever is done: 1 + 2 + 3 + 4 + 5."""


class FragileEnv(tiny_envs.CountEnv):
    """TinyCount that counts the envs that are open, and may break, or give NaN, or signal this process, at a step."""

    opened = 0
    steps = 0
    trouble_at = 0
    trouble = None

    def __init__(self):
        super().__init__()
        FragileEnv.opened += 1

    def step(self, action):
        FragileEnv.steps += 1
        observation, reward, *rest = super().step(action)
        if FragileEnv.steps == FragileEnv.trouble_at:
            if isinstance(FragileEnv.trouble, int):
                os.kill(os.getpid(), FragileEnv.trouble)
            elif isinstance(FragileEnv.trouble, float):
                reward = FragileEnv.trouble
            else:
                raise ValueError("the joint is broken")
        return observation, reward, *rest

    def close(self):
        FragileEnv.opened -= 1


gym.register(id="TinyFragile-v0", entry_point=FragileEnv)


@pytest.fixture
def fragile():
    FragileEnv.opened = FragileEnv.steps = FragileEnv.trouble_at = 0
    FragileEnv.trouble = None
    yield FragileEnv
    assert FragileEnv.opened == 0, "envs were left open"


def study_of(folder, env_id="TinyCount-v0", algo="a2c", **settings):
    options = {
        "n_timesteps": 40,
        "n_trials": 2,
        "pruner": "none",
        "sampler": "random",
        "n_eval_episodes": 2,
        "seed": 1,
        "verbose": 0,
        "device": "cpu",
        "hyperparams": {"n_steps": 20},
        "optimize_hyperparameters": True,
        **settings,
    }
    return ExperimentManager(None, algo, env_id, str(folder / "logs"), **options)


def journal(folder):
    return str(folder / "study.log")


def trials_of(folder):
    return open_study(journal(folder), NAME).trials


def states_of(folder):
    return [trial.state.name for trial in trials_of(folder)]


@pytest.mark.slow
def test_the_seed_s_example_runs_as_written(tmp_path, monkeypatch):
    """Twice in a row; but for the numbers of trials (50 there) and steps (10,000 there)."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        args = argparse.Namespace(
            algo="ppo",
            env="CartPole-v1",
            n_timesteps=10000,
            eval_freq=2000,
            n_eval_episodes=5,
            verbose=0,  # Reduce verbosity for optimization
            seed=42,
        )

        # Create experiment manager for optimization
        exp_manager = ExperimentManager(
            args=args,
            algo="ppo",
            env_id="CartPole-v1",
            log_folder="./optim_logs",
            n_timesteps=500,
            eval_freq=2000,
            optimize_hyperparameters=True,
            n_trials=1,
            n_jobs=2,
            sampler="tpe",
            pruner="median",
            study_name="ppo_cartpole_optimization",
            seed=42,
        )

        # Run hyperparameter optimization
        result = exp_manager.hyperparameters_optimization()
        assert result.table["state"].tolist() == ["COMPLETE"]
        assert result.value == result.table["value"].max()


def test_setting_up_a_study_gives_no_model(tmp_path):
    manager = study_of(tmp_path)
    assert manager.setup_experiment() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("algo", "env_id"),
    [
        ("a2c", "TinyCount-v0"),
        ("ars", "TinyCount-v0"),
        ("crossq", "TinyCount-v0"),
        ("ddpg", "TinyCount-v0"),
        ("dqn", "CartPole-v1"),
        ("ppo", "TinyCount-v0"),
        ("ppo_lstm", "TinyCount-v0"),
        ("ppo_mask", "CartPole-v1"),
        ("qrdqn", "CartPole-v1"),
        ("sac", "TinyCount-v0"),
        ("td3", "TinyCount-v0"),
        ("tqc", "TinyCount-v0"),
        ("trpo", "TinyCount-v0"),
    ],
)
def test_a_trial_of_every_algorithm(algo, env_id, tmp_path):
    given = {"policy": "MlpLstmPolicy", "n_steps": 32, "n_epochs": 1} if algo == "ppo_lstm" else {}
    manager = study_of(tmp_path, env_id, algo, hyperparams=given, n_trials=1, n_timesteps=40)
    result = manager.hyperparameters_optimization()
    assert result.number == 0
    if env_id == "TinyCount-v0":
        assert result.value == RETURN


def test_hindsight_replay_is_searched_too(tmp_path):
    given = {
        "policy": "MultiInputPolicy",
        "replay_buffer_class": "HerReplayBuffer",
        "replay_buffer_kwargs": {"copy_info_dict": True},
        "learning_starts": 20,
        "buffer_size": 1000,
    }
    (tmp_path / "her.yml").write_text(yaml.safe_dump({"TinyGoal-v0": {"n_timesteps": 60, **given}}))
    config = str(tmp_path / "her.yml")
    result = study_of(
        tmp_path, "TinyGoal-v0", "sac", config=config, hyperparams=None, n_trials=1
    ).hyperparameters_optimization()
    assert result.hyperparams["replay_buffer_kwargs"] == {
        "copy_info_dict": True,
        "n_sampled_goal": result.params["n_sampled_goal"],
        "goal_selection_strategy": result.params["goal_selection_strategy"],
    }


def test_the_reports(tmp_path):
    manager = study_of(tmp_path, storage=journal(tmp_path), study_name=NAME, n_evaluations=2)
    result = run_study(manager)
    home = tmp_path / "logs" / "a2c"
    assert sorted(home.iterdir()) == sorted([result.path, result.best_path])
    assert result.path.name.startswith("report_TinyCount-v0_2-trials-40-random-none_")
    table = pd.read_csv(result.path)
    assert table["state"].tolist() == ["COMPLETE", "COMPLETE"]
    assert table["value"].tolist() == [RETURN, RETURN]
    assert table["user_attrs_num_timesteps"].tolist() == [40, 40]
    assert {"number", "duration", "params_learning_rate", "user_attrs_gamma"} <= set(table.columns)
    assert (result.study_name, result.value, len(result.table)) == (NAME, RETURN, 2)
    assert yaml.safe_load(result.best_path.read_text()) == {"TinyCount-v0": result.hyperparams}
    trial = trials_of(tmp_path)[result.number]
    assert trial.params == result.params
    assert trial.intermediate_values == {20: RETURN, 40: RETURN}
    attributes = open_study(journal(tmp_path), NAME).user_attrs
    assert attributes["n_steps"] == 20
    assert "command" in attributes


def test_training_with_a_trial_is_the_trial(tmp_path):
    """By number, and from the file of the best one: the same hyperparameters and, with the same seed, the same result."""
    where = {"storage": journal(tmp_path), "study_name": NAME}
    common = {"hyperparams": None, "seed": 5, "n_timesteps": 600}
    result = study_of(tmp_path, "CartPole-v1", n_evaluations=3, **common, **where).hyperparameters_optimization()
    again = {"n_trials": 1, "optimize_hyperparameters": False, "keep_checkpoints": 0, **common}
    for settings in ({**where, "trial_id": result.number}, where, {"config": str(result.best_path), "n_timesteps": 0}):
        manager = study_of(tmp_path, "CartPole-v1", **{**again, **settings})
        model = manager.setup_experiment()
        manager.learn(model)
        value, _ = manager.final_evaluation()
        assert value == result.value
        assert {**manager.saved_hyperparams, "n_timesteps": 600} == result.hyperparams


def test_statistics_of_normalisation_reach_the_evaluation(tmp_path):
    where = {"storage": journal(tmp_path), "study_name": NAME}
    common = {"hyperparams": {"normalize": True, "n_steps": 20}, "seed": 5, "n_timesteps": 400}
    result = study_of(tmp_path, "CartPole-v1", **common, **where).hyperparameters_optimization()
    manager = study_of(tmp_path, "CartPole-v1", optimize_hyperparameters=False, **common, **where)
    manager.learn(manager.setup_experiment())
    assert manager.final_evaluation()[0] == result.value


def test_the_same_seed_gives_the_same_study(tmp_path):
    first, second, other = (
        study_of(tmp_path, sampler="tpe", seed=seed).hyperparameters_optimization().table for seed in (1, 1, 2)
    )
    params = [name for name in first.columns if name.startswith("params_")]
    assert first[params].equals(second[params])
    assert not first[params].equals(other[params])


def test_going_on_with_a_study_draws_other_points(tmp_path):
    where = {"storage": journal(tmp_path), "study_name": NAME}
    for _ in range(2):
        study_of(tmp_path, n_trials=1, **where).hyperparameters_optimization()
    first, second = trials_of(tmp_path)
    assert first.params != second.params


def test_a_total_counts_what_is_there(tmp_path):
    where = {"storage": journal(tmp_path), "study_name": NAME}
    study = open_study(journal(tmp_path), NAME)
    study.tell(study.ask(), state=TrialState.FAIL)  # Broken off: does not count.
    study_of(tmp_path, n_trials=1, **where).hyperparameters_optimization()
    study_of(tmp_path, n_trials=1, max_total_trials=3, **where).hyperparameters_optimization()
    assert states_of(tmp_path) == ["FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    study_of(tmp_path, n_trials=5, max_total_trials=3, **where).hyperparameters_optimization()
    assert len(trials_of(tmp_path)) == 4


def test_diverging_ends_a_trial_and_not_the_study(tmp_path, fragile, caplog):
    """Case B1: a learning rate that no number survives."""
    study = open_study(journal(tmp_path), NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It is out of the space's range.
        study.enqueue_trial({"learning_rate": 1e30})
    with caplog.at_level(logging.WARNING):
        result = study_of(
            tmp_path, "TinyFragile-v0", storage=journal(tmp_path), study_name=NAME, n_trials=3, n_timesteps=200
        ).hyperparameters_optimization()
    assert states_of(tmp_path) == ["FAIL", "COMPLETE", "COMPLETE"]
    failed = trials_of(tmp_path)[0]
    assert failed.user_attrs["failure"].startswith("NonFiniteError")
    assert "'learning_rate': 1e+30" in caplog.text
    assert result.number in (1, 2)
    assert pd.read_csv(result.path)["state"].tolist() == ["FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize(("trouble", "told"), [(None, "ValueError: the joint is broken"), (float("nan"), "NonFiniteError")])
def test_an_env_that_breaks_ends_a_trial_and_not_the_study(trouble, told, tmp_path, fragile):
    # Training ends at step 40, so that the 43rd is one of the evaluation's.
    fragile.trouble, fragile.trouble_at = trouble, 43
    result = study_of(tmp_path, "TinyFragile-v0", storage=journal(tmp_path), study_name=NAME).hyperparameters_optimization()
    assert states_of(tmp_path) == ["FAIL", "COMPLETE"]
    failed = trials_of(tmp_path)[0]
    assert failed.user_attrs["failure"].startswith(told)
    assert "Traceback" in failed.user_attrs[TRACEBACK]
    assert failed.params
    assert result.number == 1


def test_settings_that_suit_no_trial_end_the_study(tmp_path):
    manager = study_of(tmp_path, "TinyCount-v0", "dqn", hyperparams=None, storage=journal(tmp_path), study_name=NAME)
    with pytest.raises(ConfigError, match="dqn on TinyCount-v0"):
        manager.hyperparameters_optimization()
    assert states_of(tmp_path) == ["FAIL"]


def test_when_all_fail_there_is_a_table_and_no_best(tmp_path, fragile):
    fragile.trouble_at = 1
    result = study_of(tmp_path, "TinyFragile-v0", n_trials=1).hyperparameters_optimization()
    assert (result.number, result.value, result.best_path) == (None, None, None)
    assert result.table["state"].tolist() == ["FAIL"]


def test_weak_trials_are_pruned_with_what_they_had(tmp_path):
    """The first trials of a study that has seen 100 per evaluation are below its median."""
    study = open_study(journal(tmp_path), NAME)
    for _ in range(2):
        trial = study.ask()
        for mark in (20, 40, 60, 80):
            trial.report(100.0, mark)
        study.tell(trial, 100.0)
    settings = {"pruner": "median", "n_evaluations": 4, "n_timesteps": 80}
    study_of(tmp_path, storage=journal(tmp_path), study_name=NAME, **settings).hyperparameters_optimization()
    pruned = trials_of(tmp_path)[2]
    assert states_of(tmp_path)[2:] == ["PRUNED", "PRUNED"]
    assert pruned.intermediate_values == {20: RETURN}
    assert pruned.user_attrs["num_timesteps"] == 20


def test_a_rollout_longer_than_the_time_between_evaluations_passes_some(tmp_path):
    settings = {"n_evaluations": 8, "n_timesteps": 80, "hyperparams": {"n_steps": 30}, "n_trials": 1}
    study_of(tmp_path, storage=journal(tmp_path), study_name=NAME, **settings).hyperparameters_optimization()
    (trial,) = trials_of(tmp_path)
    assert list(trial.intermediate_values) == [30, 60, 80]
    assert trial.user_attrs["num_timesteps"] == 90


def test_evaluations_of_each_trial_are_kept_where_asked(tmp_path):
    study_of(tmp_path, optimization_log_path=str(tmp_path / "opt"), n_evaluations=2).hyperparameters_optimization()
    for number in range(2):
        folder = tmp_path / "opt" / f"trial_{number}"
        assert read_evaluations(folder / "evaluations.npz")["timesteps"] == [20, 40]
        assert (folder / "best_model.zip").exists()


def test_what_is_given_is_not_searched(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        result = study_of(tmp_path, hyperparams={"learning_rate": 0.5, "n_steps": 20}).hyperparameters_optimization()
    assert "Given, and so not searched: learning_rate, n_steps" in caplog.text
    assert result.hyperparams["learning_rate"] == 0.5


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_study_with_its_reports(signum, tmp_path, fragile):
    fragile.trouble, fragile.trouble_at = int(signum), 70
    manager = study_of(tmp_path, "TinyFragile-v0", storage=journal(tmp_path), study_name=NAME, n_trials=5)
    before = signal.getsignal(signum)
    result = manager.hyperparameters_optimization()
    assert signal.getsignal(signum) is before
    assert manager.stop_signal == signum
    assert states_of(tmp_path) == ["COMPLETE", "FAIL"]
    assert "failure" not in trials_of(tmp_path)[1].user_attrs
    assert result.number == 0
    assert result.path.exists()


def test_the_objective_serves_a_study_of_one_s_own(tmp_path, fragile):
    study = optuna.create_study(direction="maximize")
    study.optimize(study_of(tmp_path, "TinyFragile-v0").objective, n_trials=2)
    assert [trial.value for trial in study.trials] == [RETURN, RETURN]
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sampler": "tpee"}, "did you mean 'tpe'"),
        ({"pruner": "medain"}, "did you mean 'median'"),
        ({"n_trials": 0}, "at least 1"),
        ({"max_total_trials": 0}, "at least 1"),
        ({"n_evaluations": 0}, "n_evaluations"),
        ({"n_startup_trials": -1}, "n_startup_trials"),
        ({"trial_id": 0}, "--trial-id"),
        ({"storage": "nowhere"}, "'nowhere' cannot be opened"),
        ({"hyperparams": {"n_stepz": 3}}, "did you mean 'n_steps'"),
    ],
)
def test_bad_settings_are_told_before_anything_starts(settings, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        study_of(tmp_path, **settings).hyperparameters_optimization()
    assert list(tmp_path.iterdir()) == []
