"""Which rows of a study count, which are gone on with, and how rows end."""

import optuna
from optuna.trial import TrialState

from lit_sb3_ray.tuning.rows import (
    CHECKPOINT,
    CONTINUES,
    DRIVER,
    FAILURE,
    FOLDER,
    SURPLUS,
    TRACEBACK,
    break_off,
    counts,
    enqueue_continuation,
    fail,
    finished,
    one_line,
    to_continue,
)

COMPLETE, PRUNED, RUNNING, OWN_ERROR, BROKEN_OFF, SURPLUS_ROW, CONTINUED, EMPTY = range(8)


def study_with_all():
    """A row of each kind, by the numbers above; the seventh is gone on with by a row that waits, the last."""
    study = optuna.create_study(direction="maximize")
    for number in range(EMPTY):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        if number == COMPLETE:
            study.tell(trial, 1.0)
        elif number == PRUNED:
            trial.report(1.0, 20)
            study.tell(trial, state=TrialState.PRUNED)
        elif number == OWN_ERROR:
            fail(study, trial, "ValueError: broken", "Traceback ...")
        elif number == SURPLUS_ROW:
            trial.set_user_attr(SURPLUS, True)
            study.tell(trial, state=TrialState.FAIL)
        elif number != RUNNING:
            break_off(study, study.trials[number])
    empty = study.ask()
    break_off(study, study.trials[empty.number])
    enqueue_continuation(study, study.trials[CONTINUED])
    return study


def test_what_was_lost_or_was_too_much_does_not_count():
    rows = study_with_all().trials
    assert [row.number for row in rows if counts(row)] == [COMPLETE, PRUNED, RUNNING, OWN_ERROR, EMPTY + 1]
    assert [row.number for row in rows if finished(row)] == [COMPLETE, PRUNED, OWN_ERROR]


def test_what_was_broken_off_and_has_drawn_is_gone_on_with_once():
    study = study_with_all()
    assert [row.number for row in to_continue(study.trials)] == [BROKEN_OFF]
    enqueue_continuation(study, study.trials[BROKEN_OFF])
    assert to_continue(study.trials) == []


def test_a_continuation_has_what_its_row_had_drawn_and_reached():
    study = optuna.create_study()
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    for name, value in {DRIVER: "a", FOLDER: "f", CHECKPOINT: {"path": "p", "mark": 40}, "seed": 3}.items():
        trial.set_user_attr(name, value)
    break_off(study, study.trials[0])
    enqueue_continuation(study, study.trials[0])
    goes_on = study.ask()
    assert goes_on.suggest_float("x", 0.0, 1.0) == study.trials[0].params["x"]
    assert goes_on.user_attrs == {CHECKPOINT: {"path": "p", "mark": 40}, "seed": 3, CONTINUES: 0}


def test_a_failed_row_has_its_reason():
    row = study_with_all().trials[OWN_ERROR]
    assert row.state == TrialState.FAIL
    assert row.user_attrs == {FAILURE: "ValueError: broken", TRACEBACK: "Traceback ..."}


def test_an_exception_is_one_line():
    assert one_line(ValueError("two\n  lines")) == "ValueError: two lines"
