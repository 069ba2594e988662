"""Whatever may befall a trial, one after another in one real study: what it leaves in the rows, and that the study goes on.

And what befalls the study itself: its storage is lost while a trial is at work.
"""

import json
import time
from pathlib import Path

import pandas as pd
import pytest
from optuna.trial import TrialState
from studies import NAME, POINT, enqueue, journal, met, open_study, plan, rows_of, states_of, study_of

from lit_sb3_ray.errors import StudyError
from lit_sb3_ray.tuning.rows import CHECKPOINT, FAILURE, SURPLUS, TRACEBACK

WHOLE, CONSTRUCTOR, RESET, STEP, REWARD, EVALUATION, LOST, DISK, MENDED, WEIGHTS = range(10)
TROUBLES = (
    {"role": "train", "when": "step", "at": 100, "what": "pass"},
    {"role": "train", "when": "construct", "what": "error"},
    {"role": "train", "when": "reset", "what": "error"},
    {"role": "train", "when": "step", "at": 13, "what": "error"},
    {"role": "train", "when": "step", "at": 13, "what": "nan"},
    {"role": "eval", "when": "step", "at": 3, "what": "nan"},
    # Twice within one trial: going on from its checkpoint at 20, it meets the second at its step 50.
    {"role": "train", "when": "step", "at": 30, "what": "kill"},
    {"role": "train", "when": "step", "at": 30, "what": "kill"},
    {"role": "train", "when": "step", "at": 10, "what": "small files"},
    {"role": "train", "when": "step", "at": 100, "what": "large files"},
    {"role": "train", "when": "step", "at": 50, "what": "kill"},
)


@pytest.fixture(scope="module")
def study(ray_instance, tmp_path_factory):
    """A study of ten trials, of which two meet no trouble: its folder and its result."""
    folder = tmp_path_factory.mktemp("faults")
    where = enqueue(folder, *[POINT] * WEIGHTS, {**POINT, "learning_rate": 1e30})
    options = {"checkpoint_every": 0.0, "max_failures": 1}
    manager = study_of(folder, options=options, n_trials=10, **where, **plan(folder, *TROUBLES))
    result = manager.hyperparameters_optimization()
    assert len(met(folder)) == len(TROUBLES)
    return folder, result


@pytest.fixture
def rows(study):
    return rows_of(study[0])


def test_the_study_goes_on_whatever_happens(study, rows):
    assert [row.number for row in rows if row.state == TrialState.COMPLETE] == [WHOLE, DISK, MENDED]
    assert states_of(study[0]).count("FAIL") == 7
    assert study[1].number in (WHOLE, DISK, MENDED)
    assert pd.read_csv(study[1].path)["state"].tolist() == states_of(study[0])


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (CONSTRUCTOR, "ConfigError: environment 'StudyWorth-v0' cannot be built: ValueError: the joint is broken"),
        (RESET, "ValueError: the joint is broken"),
        (STEP, "ValueError: the joint is broken"),
        (REWARD, "NonFiniteError"),
        (EVALUATION, "NonFiniteError"),
        (WEIGHTS, "NonFiniteError"),
    ],
)
def test_a_trial_s_own_error_is_kept_with_its_parameters(rows, number, told):
    """Cases B1 and B2: it is not tried again, and what it had drawn is known."""
    row = rows[number]
    assert row.user_attrs[FAILURE].startswith(told)
    assert "Traceback (most recent call last)" in row.user_attrs[TRACEBACK]
    point = {**POINT, "learning_rate": 1e30} if number == WEIGHTS else POINT
    assert row.params.items() >= point.items()
    assert row.value is None


def test_an_env_s_error_shows_where_the_env_broke(rows):
    assert "study_envs.py" in rows[STEP].user_attrs[TRACEBACK]


def test_evaluations_before_the_error_are_kept(rows):
    assert list(rows[WEIGHTS].intermediate_values) == [] or max(rows[WEIGHTS].intermediate_values) < 100
    assert list(rows[LOST].intermediate_values) == [20, 40]


def test_a_trial_whose_process_is_lost_too_often_fails_with_the_reason(study, rows):
    kills = [pid for what, pid in met(study[0]) if what == "kill"]
    assert len(set(kills)) == 3
    assert "ActorDiedError" in rows[LOST].user_attrs[FAILURE]


def test_a_lost_trial_goes_on_as_if_nothing_had_happened(study, rows):
    """Killed at step 50 with a checkpoint of step 40: every evaluation is that of a trial that nobody has touched."""
    assert rows[MENDED].intermediate_values == rows[WHOLE].intermediate_values
    assert rows[MENDED].value == rows[WHOLE].value
    assert len(set(rows[WHOLE].intermediate_values.values())) == 5
    lines = [json.loads(line) for line in results_of(study[1], MENDED).splitlines()]
    assert [line["timesteps_total"] for line in lines] == [20, 40, 60, 80, 100]


def results_of(result, number):
    (path,) = result.folder.glob(f"trials/trial_{number:05d}_*/result.json")
    return path.read_text()


def test_a_trial_that_cannot_write_checkpoints_goes_on_without(study, rows):
    assert rows[DISK].intermediate_values == rows[WHOLE].intermediate_values
    assert CHECKPOINT not in rows[DISK].user_attrs
    output = (study[1].folder / "output" / f"trial_{DISK:05d}" / "output.log").read_text()
    assert output.count(f"Trial {DISK} goes on without a new checkpoint: OSError") == 4
    assert not list(study[1].folder.glob(f"trials/trial_{DISK:05d}_*/checkpoint_*"))


def test_no_row_is_left_running(study):
    study = open_study(journal(study[0]), NAME)
    assert all(row.state.is_finished() and SURPLUS not in row.user_attrs for row in study.trials)


def test_a_study_whose_storage_is_lost_ends_in_one_line_and_is_gone_on_with(ray_instance, tmp_path):
    """Nothing is left at work, and what was kept until then is whole."""
    import ray

    where = enqueue(tmp_path, POINT)
    lost = plan(tmp_path, {"role": "train", "when": "step", "at": 50, "what": "no storage"})
    with pytest.raises(
        StudyError, match=r"study 's' cannot be kept any more: IsADirectoryError: .*go on with --resume"
    ) as error:
        study_of(tmp_path, options={"checkpoint_every": 0.0}, **where, **lost).hyperparameters_optimization()
    assert "\n" not in str(error.value)
    ((_, pid),) = met(tmp_path)
    deadline = time.monotonic() + 60.0
    while Path(f"/proc/{pid}").exists() or ray.available_resources()["CPU"] < 4.0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (tmp_path / "study.log").rmdir()
    (tmp_path / "kept.log").rename(tmp_path / "study.log")
    (row,) = rows_of(tmp_path)
    assert (row.state, list(row.intermediate_values)) == (TrialState.RUNNING, [20, 40])
