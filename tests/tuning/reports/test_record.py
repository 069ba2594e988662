"""What reports read from a study's rows, whoever has written them."""

import math

import made_studies as made
import optuna
import pytest

from lit_sb3_ray.tuning.reports.record import best_first, by_merit, count_states, curve_of, last_of, record, value_of
from lit_sb3_ray.tuning.rows import enqueue_continuation

PARAMS = {"learning_rate": 1e-3}


def of(*rows, **settings):
    study = made.new_study(**settings)
    study.add_trials(rows)
    return record(study)


def test_the_best_come_first_and_only_complete_trials_with_a_finite_value_count():
    rows = [made.complete(PARAMS, value) for value in (1.0, math.inf, 3.0, 3.0, -math.inf, 1e300)]
    study = of(*rows, made.pruned(PARAMS), made.failed(PARAMS))
    assert [trial.number for trial in best_first(study)] == [2, 3, 0]
    assert [trial.number for trial in best_first(of(*rows, direction="minimize"))] == [0, 2, 3]


def test_all_trials_are_ordered_by_state_then_value():
    study = of(
        made.failed(PARAMS), made.pruned(PARAMS, 1), made.complete(PARAMS, 1.0), made.pruned(PARAMS, 3), made.complete(PARAMS)
    )
    assert [trial.number for trial in by_merit(study)] == [4, 2, 3, 1, 0]
    assert count_states(study.trials) == {"complete": 2, "pruned": 2, "fail": 1}


def test_a_trial_that_was_broken_off_is_seen_in_its_last_row():
    study = made.new_study()
    study.add_trials([made.row(optuna.trial.TrialState.FAIL, PARAMS, curve={20: 1.0}), made.failed(PARAMS)])
    enqueue_continuation(study, study.trials[0])
    study.add_trial(made.row(optuna.trial.TrialState.FAIL, PARAMS, surplus=True))
    seen = record(study)
    assert [trial.number for trial in seen.trials] == [1, 2]
    assert (seen.extent.rows, seen.extent.ended) == (4, 3)


def test_values_that_cannot_be_drawn_are_left_out_of_curves():
    trial = made.row(optuna.trial.TrialState.PRUNED, PARAMS, curve={3: math.nan, 1: 2.0, 2: math.inf})
    assert curve_of(trial) == [(1, 2.0)]
    assert last_of(trial) == 2.0
    assert value_of(trial) is None
    assert last_of(made.failed(PARAMS)) is None


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"algo": "sac", "env": "Pendulum-v1"}, ("sac", "Pendulum-v1")),
        ({"command": "python -m rl_zoo3.train --algo td3 --env=Pendulum-v1 -optimize"}, ("td3", "Pendulum-v1")),
        ({"command": "train --algo 'broken"}, ("'broken", None)),
        ({"command": 3, "algo": ["ppo"]}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_the_algorithm_and_env_are_the_study_s_or_its_command_s(attributes, told):
    study = of(attributes=attributes)
    assert (study.algo, study.env_id) == told


@pytest.mark.parametrize(
    ("attributes", "budget", "marks"),
    [
        ({"n_timesteps": "20_000", "marks": [5, 10]}, 20000, (5, 10)),
        ({"n_timesteps": "many", "marks": [5, "x", 10, True, None]}, 10, (5, 10)),
        ({"marks": "none"}, None, ()),
    ],
)
def test_the_budget_is_read_from_whatever_is_there(attributes, budget, marks):
    study = of(attributes=attributes)
    assert (study.budget, study.marks) == (budget, marks)
