"""Studies run for real, with tiny budgets: what trials do, what ends them, and what is left afterwards."""

import argparse
import json
import logging
import os
import sqlite3
import threading
import time
from dataclasses import replace

import optuna
import pandas as pd
import pytest
import yaml
from optuna.trial import TrialState
from studies import NAME, POINT, enqueue, journal, plan, rows_of, states_of, study_of

from lit_sb3_ray import ExperimentManager, run_study
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.tuning import room
from lit_sb3_ray.tuning.drivers import _is_running
from lit_sb3_ray.tuning.reports.standing import standing_of
from lit_sb3_ray.tuning.rows import CHECKPOINT, FAILURE, JUMPED, SEED_VALUES, SPREAD, TIMESTEPS
from lit_sb3_ray.tuning.running import trial_seeds
from lit_sb3_ray.tuning.schedule.schedulers import original_number
from lit_sb3_ray.tuning.storage import open_study
from lit_sb3_ray.tuning.study import _retrain

RETURN = 15.0
"""What an episode of TinyCount-v0 gives, whatever is done: 1 + 2 + 3 + 4 + 5."""
MARKS = [20, 40, 60, 80, 100]
IN_TIME_S = 20.0
"""Most of it is for a busy machine: a study is over within two seconds, and its reports are written."""
LOCKED_S = 7.0
"""Longer than SQLite waits by itself."""


@pytest.fixture(scope="module")
def finished(ray_instance, tmp_path_factory):
    """A study of four trials, the first two with the same parameters, on an env that draws from the process's generators."""
    folder = tmp_path_factory.mktemp("finished")
    where = enqueue(folder, POINT, POINT)
    settings = {"sampler": "tpe", "n_trials": 4, "optimization_log_path": str(folder / "opt")}
    return folder, run_study(study_of(folder, "StudyGlobal-v0", **settings, **where))


@pytest.fixture(scope="module")
def again(ray_instance, tmp_path_factory):
    """The same study, but two seeds a trial, worth their best evaluation, in an SQLite file that is locked for a while."""
    folder = tmp_path_factory.mktemp("again")
    path = folder / "study.db"
    storage = f"sqlite:///{path}"
    for _ in range(2):
        open_study(storage, NAME).enqueue_trial(POINT)
    held = sqlite3.connect(path, check_same_thread=False)
    held.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(LOCKED_S, held.rollback)
    release.start()
    begun = time.monotonic()
    settings = {"sampler": "tpe", "n_trials": 4, "seeds_per_trial": 2, "trial_objective": "best"}
    result = run_study(study_of(folder, "StudyGlobal-v0", storage=storage, study_name=NAME, **settings))
    assert time.monotonic() - begun > LOCKED_S
    release.join()
    held.close()
    return open_study(storage, NAME).trials, result


@pytest.mark.slow
def test_the_seed_s_example_runs_as_written(ray_instance, tmp_path, monkeypatch):
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
            n_trials=4,
            n_jobs=2,
            sampler="tpe",
            pruner="median",
            study_name="ppo_cartpole_optimization",
            seed=42,
        )

        # Run hyperparameter optimization
        result = exp_manager.hyperparameters_optimization()
        assert result.table["state"].tolist() == ["COMPLETE"] * 4
        assert result.value == result.table["value"].max()
        assert result.study_name == "ppo_cartpole_optimization"
    assert sorted(path.name for path in (tmp_path / "optim_logs" / "ppo").glob("*_study_*")) == [
        "CartPole-v1_study_1",
        "CartPole-v1_study_2",
    ]


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
def test_the_objective_serves_a_study_of_one_s_own_with_every_algorithm(algo, env_id, tmp_path):
    given = {"policy": "MlpLstmPolicy", "n_steps": 32, "n_epochs": 1} if algo == "ppo_lstm" else {}
    study = optuna.create_study(direction="maximize")
    study.optimize(study_of(tmp_path, env_id, algo, hyperparams=given, n_timesteps=40, n_evaluations=1).objective, n_trials=1)
    (trial,) = study.trials
    assert trial.state == TrialState.COMPLETE
    if env_id == "TinyCount-v0":
        assert trial.value == RETURN
    assert not (tmp_path / "logs").exists()


def test_hindsight_replay_is_searched_too(tmp_path):
    given = {
        "policy": "MultiInputPolicy",
        "replay_buffer_class": "HerReplayBuffer",
        "replay_buffer_kwargs": {"copy_info_dict": True},
        "learning_starts": 20,
        "buffer_size": 1000,
    }
    (tmp_path / "her.yml").write_text(yaml.safe_dump({"TinyGoal-v0": {"n_timesteps": 60, **given}}))
    study = optuna.create_study(direction="maximize")
    manager = study_of(tmp_path, "TinyGoal-v0", "sac", config=str(tmp_path / "her.yml"), hyperparams=None, n_timesteps=60)
    study.optimize(manager.objective, n_trials=1)
    assert study.best_trial.user_attrs["hyperparams"]["replay_buffer_kwargs"] == {
        "copy_info_dict": True,
        "n_sampled_goal": study.best_params["n_sampled_goal"],
        "goal_selection_strategy": study.best_params["goal_selection_strategy"],
    }


def test_the_reports(finished):
    folder, result = finished
    assert result.path.name.startswith("report_StudyGlobal-v0_4-trials-100-tpe-none_")
    table = pd.read_csv(result.path)
    assert table["state"].tolist() == ["COMPLETE"] * 4
    assert table["user_attrs_num_timesteps"].tolist() == [100] * 4
    assert {"number", "duration", "params_learning_rate", "user_attrs_gamma"} <= set(table.columns)
    assert (result.study_name, len(result.table)) == (NAME, 4)
    assert result.value == table["value"].max()
    assert yaml.safe_load(result.best_path.read_text()) == {"StudyGlobal-v0": result.hyperparams}
    trial = rows_of(folder)[result.number]
    assert (trial.params, trial.value) == (result.params, result.value)


def test_the_rows_and_the_study_s_own_attributes(finished):
    folder, _ = finished
    for row in rows_of(folder):
        assert list(row.intermediate_values) == MARKS
        assert row.value == row.intermediate_values[100]
        assert row.user_attrs[TIMESTEPS] == 100
        assert not {SPREAD, SEED_VALUES, JUMPED, FAILURE} & row.user_attrs.keys()
    attributes = open_study(journal(folder), NAME).user_attrs
    assert attributes["n_steps"] == 20
    assert {"command", "env", "marks", "objective", "pruner", "sampler", "total"} <= attributes.keys()


def test_a_warm_process_is_as_good_as_a_fresh_one(finished):
    """Case J1: two trials with the same parameters, one after another in one process, on an env that shares its generators."""
    folder, result = finished
    first, second = rows_of(folder)[:2]
    assert first.intermediate_values == second.intermediate_values
    assert len(set(first.intermediate_values.values())) == 5
    assert len(processes_of(result)) == 1


def processes_of(result):
    """The processes that the results of a study's trials have come from."""
    lines = [line for path in result.folder.glob("trials/*/result.json") for line in path.read_text().splitlines()]
    return {json.loads(line)["pid"] for line in lines}


def test_each_trial_has_a_tensorboard_run_with_its_parameters(finished):
    """Case F1."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, result = finished
    for row in rows_of(folder):
        (run,) = result.folder.glob(f"trials/trial_{row.number:05d}_*")
        events = EventAccumulator(str(run))
        events.Reload()
        returns = {event.step: event.value for event in events.Scalars("ray/tune/mean_reward")}
        assert returns == pytest.approx(row.intermediate_values)
        start = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        for name in row.params:
            assert f"params/{name}".encode() in start


def test_each_trial_s_output_is_in_a_file_of_its_own(finished):
    _, result = finished
    for number in range(4):
        lines = (result.folder / "output" / f"trial_{number:05d}" / "output.log").read_text().splitlines()
        assert lines.count("a train env opens") == 2  # One to train in, one to evaluate in.


def test_evaluations_of_each_trial_are_kept_where_asked(finished):
    folder, _ = finished
    for number in range(4):
        kept = folder / "opt" / f"trial_{number}"
        assert read_evaluations(kept / "evaluations.npz")["timesteps"] == MARKS
        assert (kept / "best_model.zip").exists()


def test_several_seeds_are_one_trial_worth_their_mean(finished, again):
    """Case B14."""
    rows, _ = again
    for row in rows:
        values = row.user_attrs[SEED_VALUES]
        assert len(values) == 2
        assert row.intermediate_values[100] == pytest.approx(sum(values) / 2)
        assert row.user_attrs[SPREAD] == pytest.approx(abs(values[0] - values[1]) / 2)
        assert row.user_attrs[SPREAD] > 0


def test_each_seed_trains_as_it_does_alone(finished, again):
    """The first of several seeds gives what it gives by itself, the generators of the process being shared or not."""
    alone = [row.intermediate_values[100] for row in rows_of(finished[0])]
    assert [row.user_attrs[SEED_VALUES][0] for row in again[0]] == alone


def test_a_trial_is_worth_its_best_evaluation_when_asked(again):
    rows, result = again
    assert [row.value for row in rows] == [max(row.intermediate_values.values()) for row in rows]
    assert any(row.value != row.intermediate_values[100] for row in rows)
    assert result.value == max(row.value for row in rows)


def test_the_same_seed_draws_the_same_points(finished, again):
    """Whatever the storage, and through a database that was locked for seconds at the beginning (case B11)."""
    assert [row.params for row in again[0]] == [row.params for row in rows_of(finished[0])]
    assert again[0][2].params != again[0][3].params


def test_seeds_are_the_study_s_own_and_then_others():
    assert trial_seeds(7, 1) == (7,)
    assert trial_seeds(7, 3)[:2] == trial_seeds(7, 2)
    assert len({*trial_seeds(7, 3), *trial_seeds(8, 3)}) == 6


def test_training_with_a_trial_is_the_trial(ray_instance, tmp_path, caplog):
    """Case B15: by number, as the best, and from the file of the best; with statistics of normalisation."""
    where = {"storage": journal(tmp_path), "study_name": NAME}
    common = {"hyperparams": {"normalize": True, "learning_rate": 0.01}, "seed": 5, "n_timesteps": 600}
    with caplog.at_level(logging.WARNING):
        study = study_of(tmp_path, "CartPole-v1", n_evaluations=3, **common, **where)
        result = study.hyperparameters_optimization()
    assert "Given, and so not searched: learning_rate" in caplog.text
    assert result.hyperparams["learning_rate"] == 0.01
    again = {"n_trials": 1, "optimize_hyperparameters": False, "keep_checkpoints": 0, **common}
    for settings in ({**where, "trial_id": result.number}, where, {"config": str(result.best_path), "n_timesteps": 0}):
        manager = study_of(tmp_path, "CartPole-v1", **{**again, **settings})
        manager.learn(manager.setup_experiment())
        assert manager.final_evaluation()[0] == result.value
        assert {**manager.saved_hyperparams, "n_timesteps": 600} == result.hyperparams


def test_as_many_trials_at_once_as_asked_and_long_rollouts_pass_evaluations(ray_instance, tmp_path, monkeypatch):
    """Case B10. The first trial waits for the second, for which there is no room at first, as where a node comes later.

    Rollouts of 30 steps: reports at 30, 60, 90 belong to marks 30, 60, 80.
    """
    find = room.find_room
    monkeypatch.setattr(room, "find_room", lambda manager: replace(find(manager), at_once=1))
    wait = {"role": "train", "when": "step", "at": 3, "what": "wait"}
    where = enqueue(tmp_path, POINT, POINT)
    settings = {"n_evaluations": 8, "n_timesteps": 80, "hyperparams": {"n_steps": 30}, "n_jobs": 2}
    study = study_of(tmp_path, **settings, **where, **plan(tmp_path, wait, {**wait, "what": "open"}))
    result = study.hyperparameters_optimization()
    assert len(processes_of(result)) == 2
    for row in rows_of(tmp_path):
        assert row.state == TrialState.COMPLETE
        assert list(row.intermediate_values) == [30, 60, 80]
        assert row.user_attrs[TIMESTEPS] == 90
        assert row.user_attrs[JUMPED] == [10, 20, 40, 50, 70]


def test_a_study_ends_in_good_order_when_its_time_is_over_and_goes_on_with_other_points(ray_instance, tmp_path):
    where = {"storage": journal(tmp_path), "study_name": NAME}
    wait = plan(tmp_path, {"role": "train", "when": "step", "at": 3, "what": "wait"})
    begun = time.monotonic()
    result = study_of(tmp_path, options={"time_budget": 1.0}, **where, **wait).hyperparameters_optimization()
    assert time.monotonic() - begun < IN_TIME_S
    assert (result.number, result.value, result.best_path, result.missing) == (None, None, None, 2)
    assert result.table["state"].tolist() == ["FAIL"]
    (tmp_path / "gate").touch()
    (tmp_path / "plan.json").unlink()
    settings = {"n_trials": 5, "max_total_trials": 3}
    goes_on = study_of(tmp_path, options={"entrance": "resume"}, **settings, **where)
    result = goes_on.hyperparameters_optimization()
    assert result.missing == 0
    first, *rows = rows_of(tmp_path)
    assert [row.state for row in rows] == [TrialState.COMPLETE] * 3
    assert rows[0].params == first.params
    assert len({row.params["learning_rate"] for row in rows}) == 3
    assert result.folder == tmp_path / "logs" / "a2c" / "StudyWorth-v0_study_1"


@pytest.mark.slow
def test_a_training_that_a_time_budget_has_ended_goes_on_from_its_checkpoint(ray_instance, tmp_path):
    """In the middle of a rollout, with a real training: it is one trial in the end, and nothing is evaluated twice."""
    where = {"storage": journal(tmp_path), "study_name": NAME}
    settings = {"n_timesteps": 10_000_000, "n_evaluations": 5000, "n_eval_episodes": 1, "hyperparams": {"n_steps": 100}}
    entrance = "new"
    for budget in (10.0, 10.0, 30.0, 60.0, 120.0):  # A busy machine may not come as far as an evaluation at first.
        options = {"time_budget": budget, "checkpoint_every": 0.0, "entrance": entrance}
        begun, entrance = time.monotonic(), "resume"
        study = study_of(tmp_path, "CartPole-v1", options=options, n_trials=1, **settings, **where)
        assert study.hyperparameters_optimization().missing == 1
        assert budget < time.monotonic() - begun < budget + IN_TIME_S
        rows = rows_of(tmp_path)
        evaluated = [row for row in rows if row.intermediate_values]
        if len(evaluated) == 2:
            break
    first, second = evaluated
    assert original_number(rows, first.number) == original_number(rows, second.number) == 0
    mark = first.user_attrs.get(CHECKPOINT, {"mark": 0})["mark"]
    kept = {step: value for step, value in first.intermediate_values.items() if step <= mark}
    assert kept.items() <= second.intermediate_values.items()
    assert [step for step in second.intermediate_values if step <= mark] == list(kept)
    standing = standing_of(open_study(journal(tmp_path), NAME))
    assert (standing.states, standing.counted) == ({"BROKEN OFF": 1}, 0)


def test_the_best_is_left_to_the_driver_that_trains_it_again(tmp_path, caplog):
    """Two that have ended in the same moment both find nobody at work."""
    best, folder = tmp_path / "best.yml", tmp_path / "retrained" / "trial_00000"
    best.touch()
    folder.parent.mkdir()
    lock = RunLock(folder.parent)
    with caplog.at_level(logging.INFO):
        assert _retrain(study_of(tmp_path), best, folder, 1) is None
    lock.release()
    assert "is trained again by another driver" in caplog.text


def test_weak_trials_are_pruned_with_what_they_had(ray_instance, tmp_path):
    """Cases B3 and B4: below the median of two better ones; the best is chosen among those with the whole budget."""
    where = enqueue(tmp_path, *({**POINT, "max_grad_norm": worth} for worth in (2.0, 3.0, 0.5)))
    settings = {"pruner": "median", "n_startup_trials": 2, "n_trials": 3}
    result = study_of(tmp_path, **settings, **where).hyperparameters_optimization()
    assert states_of(tmp_path) == ["COMPLETE", "COMPLETE", "PRUNED"]
    pruned = rows_of(tmp_path)[2]
    assert list(pruned.intermediate_values) == [20]
    assert pruned.user_attrs[TIMESTEPS] == 20
    assert result.number == 1


def test_a_pruned_trial_leaves_no_env_actor_and_no_child_of_one(ray_instance, tmp_path):
    """Case J2. Two envs in actors, each with a simulator in a process of its own; the study's processes are all gone, too."""
    where = enqueue(tmp_path, *({**POINT, "max_grad_norm": worth} for worth in (3.0, 0.5)))
    settings = {"vec_env_type": "ray", "n_envs": 2, "pruner": "asha", "n_timesteps": 200, **plan(tmp_path)}
    study_of(tmp_path, "StudyChild-v0", **settings, **where).hyperparameters_optimization()
    assert states_of(tmp_path) == ["COMPLETE", "PRUNED"]
    opened = [line.split() for line in (tmp_path / "opened.txt").read_text().splitlines()]
    pids = {int(pid) for line in opened for pid in line} - {os.getpid()}
    assert len(opened) >= 6
    deadline = time.monotonic() + IN_TIME_S
    while left := [pid for pid in pids if _is_running(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_settings_that_suit_no_env_are_refused_before_there_is_anything(ray_instance, tmp_path):
    with pytest.raises(ConfigError, match="dqn on TinyCount-v0: dqn is for discrete actions"):
        study_of(tmp_path, "TinyCount-v0", "dqn", hyperparams=None).hyperparameters_optimization()
    assert list(tmp_path.iterdir()) == []


def test_settings_that_suit_no_trial_end_the_study_in_one_line(ray_instance, tmp_path, caplog):
    where = {"storage": journal(tmp_path), "study_name": NAME}
    # The first one is built only for a look at it.
    broken = plan(tmp_path, *({"role": "train", "when": "construct", "what": what} for what in ("pass", "error")))
    with caplog.at_level(logging.WARNING), pytest.raises(ConfigError, match="'StudyWorth-v0' cannot be built") as error:
        study_of(tmp_path, **broken, **where).hyperparameters_optimization()
    assert "\n" not in str(error.value)
    assert states_of(tmp_path) == ["FAIL"]
    assert "has failed" not in caplog.text


def test_more_than_any_node_has_is_refused_with_numbers(ray_instance, tmp_path):
    with pytest.raises(ConfigError, match=r"a trial needs 64 CPU, and no node of Ray has more than 4 CPU"):
        study_of(tmp_path, options={"cpus_per_trial": 64.0}).hyperparameters_optimization()
    assert list(tmp_path.iterdir()) == []


def test_another_algorithm_s_study_is_refused(finished, tmp_path):
    where = {"storage": journal(finished[0]), "study_name": NAME}
    with pytest.raises(ConfigError, match="study 's' is one of a2c, not of ppo"):
        study_of(
            tmp_path, algo="ppo", hyperparams=None, options={"entrance": "resume"}, **where
        ).hyperparameters_optimization()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_study_is_not_mixed_with_a_new_one(finished, tmp_path):
    """Case B7."""
    where = {"storage": journal(finished[0]), "study_name": NAME}
    with pytest.raises(ConfigError, match="exists already: --resume goes on with it"):
        study_of(tmp_path, **where).hyperparameters_optimization()
    assert not list(tmp_path.rglob("study.yml"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sampler": "tpee"}, "did you mean 'tpe'"),
        ({"pruner": "medain"}, "did you mean 'median'"),
        ({"n_trials": 0}, "at least 1"),
        ({"max_total_trials": 0}, "at least 1"),
        ({"n_evaluations": 0}, "n_evaluations"),
        ({"n_startup_trials": -1}, "n_startup_trials"),
        ({"seeds_per_trial": 0}, "seeds_per_trial"),
        ({"trial_objective": "mean:0"}, "mean:K"),
        ({"trial_id": 0}, "--trial-id"),
        ({"storage": "nowhere"}, "'nowhere' cannot be opened"),
        ({"hyperparams": {"n_stepz": 3}}, "did you mean 'n_steps'"),
        ({"options": {"entrance": "resume"}}, "--resume and --join need the study"),
    ],
)
def test_bad_settings_are_told_before_anything_starts(settings, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        study_of(tmp_path, **settings).hyperparameters_optimization()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
