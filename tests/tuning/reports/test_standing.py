"""Where a study stands: each trial once, however often it was broken off and gone on with."""

import optuna

from lit_sb3_ray.tuning.drivers import enter
from lit_sb3_ray.tuning.reports.standing import standing_of, told
from lit_sb3_ray.tuning.rows import DRIVER, SURPLUS, break_off, enqueue_continuation, fail, to_continue


def study_of_five():
    """Complete, failed by itself, gone on with twice and complete then, broken off, and one beyond the total."""
    study = optuna.create_study(study_name="s", direction="maximize")
    study.set_user_attr("total", 4)
    trials = [study.ask() for _ in range(5)]
    for trial in trials:
        trial.suggest_float("x", 0.0, 1.0)
    study.tell(trials[0], 1.0)
    fail(study, trials[1], "ValueError: broken", "Traceback ...")
    trials[4].set_user_attr(SURPLUS, True)
    study.tell(trials[4], state=optuna.trial.TrialState.FAIL)
    break_off(study, study.trials[2])
    for _ in range(2):
        (row,) = to_continue(study.trials)
        enqueue_continuation(study, row)
        goes_on = study.ask()
        goes_on.suggest_float("x", 0.0, 1.0)
        if goes_on.number == 5:
            break_off(study, study.trials[goes_on.number])
    study.tell(goes_on, 2.0)
    break_off(study, study.trials[3])
    return study


def test_a_trial_that_was_gone_on_with_is_counted_once():
    standing = standing_of(study_of_five())
    assert standing.states == {"COMPLETE": 2, "FAIL": 1, "BROKEN OFF": 1}
    assert (standing.counted, standing.total, standing.best.number) == (3, 4, 6)
    assert standing.failures == {1: "ValueError: broken"}


def test_it_is_told_in_lines():
    study = study_of_five()
    assert told(standing_of(study)) == [
        "s: 3 of 4 trials are over (2 complete, 1 fail, 1 broken off)",
        "nobody is at work on it",
        "best: trial 6 with 2.00",
        "trial 1 has failed: ValueError: broken",
    ]
    lease = enter(study, "resume", "s")
    enqueue_continuation(study, study.trials[3])
    trial = study.ask()
    trial.set_user_attr(DRIVER, lease.driver.id)
    trial.report(1.5, 2000)
    lines = told(standing_of(study))
    assert lines[0] == "s: 3 of 4 trials are over (2 complete, 1 fail, 1 running)"
    assert lines[1].startswith(f"at work: process {lease.driver.pid} on ")
    assert lines[2] == f"trial {trial.number}: 2,000 env steps, last 1.50"


def test_nothing_is_begun():
    assert told(standing_of(optuna.create_study(study_name="s")))[0] == "s: 0 trials are over (none begun)"
