"""Counting a study's trials: as right as counting all rows each time, without looking again at those that have ended."""

import random

import optuna
import pytest
from optuna.trial import TrialState

from lit_sb3_ray.tuning.rows import SURPLUS, break_off, counts, enqueue_continuation, fail
from lit_sb3_ray.tuning.tally import Tally


def act(study, rng):
    """Another thing that a driver may do, here or elsewhere."""
    running = [row for row in study.trials if row.state == TrialState.RUNNING]
    what = rng.choice(["ask", "ask", "tell", "fail", "prune", "lose", "surplus", "enqueue"])
    if what == "ask" or not running:
        study.ask().suggest_float("x", 0.0, 1.0)
        return
    row = rng.choice(running)
    trial = optuna.Trial(study, row._trial_id)
    if what == "tell":
        study.tell(trial, 1.0)
    elif what == "fail":
        fail(study, trial, "ValueError: broken", "Traceback ...")
    elif what == "prune":
        trial.report(1.0, 1)
        study.tell(trial, state=TrialState.PRUNED)
    elif what == "surplus":
        trial.set_user_attr(SURPLUS, True)
        study.tell(trial, state=TrialState.FAIL)
    else:
        break_off(study, row)
        if what == "enqueue":
            enqueue_continuation(study, study.trials[row.number])


@pytest.mark.parametrize("seed", range(4))
def test_it_counts_as_looking_at_all_rows_does(seed):
    rng, study = random.Random(seed), optuna.create_study()
    tally = Tally(study)
    for _ in range(60):
        act(study, rng)
        rows = study.trials
        counted = sum(map(counts, rows))
        waits = any(row.state == TrialState.WAITING for row in rows)
        for total in (counted - 1, counted, counted + 1):
            assert tally.wants_more(total) == (waits or counted < total)
        for number in range(len(rows) + 1):
            assert tally.before(number) == sum(counts(row) for row in rows if row.number < number)


class Rows(list):
    """Rows that count how often one of them is looked at."""

    looked = 0

    def __getitem__(self, index):
        Rows.looked += 1
        return super().__getitem__(index)


class Looked:
    """A study whose rows are `Rows`."""

    def __init__(self, study):
        self.study = study

    def get_trials(self, deepcopy):
        return Rows(self.study.get_trials(deepcopy=deepcopy))


def test_a_row_that_has_ended_is_not_looked_at_again():
    study = optuna.create_study()
    tally = Tally(Looked(study))
    study.ask()  # It is at work all the time.
    for _ in range(200):
        study.tell(study.ask(), 1.0)
        assert tally.wants_more(1000)
    assert Rows.looked == 2 * 200
