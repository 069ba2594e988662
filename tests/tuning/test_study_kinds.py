"""Samplers and schedulers by their names in real studies: those that no other test of studies has."""

import os

import pytest
import yaml
from optuna.trial import TrialState
from studies import enqueue, plan, rows_of, study_of
from study_envs import EPISODE

from lit_sb3_ray.tuning.rows import CHECKPOINT, CONTINUES, HYPERPARAMS, PARAMS_AT_END, WARM_START, trained
from lit_sb3_ray.tuning.schedule.schedulers import build_scheduler
from lit_sb3_ray.tuning.trainable import DRAWN

MARKS = [20, 40, 60, 80, 100]
NUMBERS = {
    "max_grad_norm": {"type": "float", "low": 0.1, "high": 5.0},
    "gamma": {"type": "float", "low": 0.9, "high": 0.99},
}
FINITE = {
    "max_grad_norm": {"type": "categorical", "choices": [1.0, 3.0]},
    "gamma": {"type": "float", "low": 0.9, "high": 0.95, "step": 0.05},
}


def rows_with(folder, space, *worths, **settings):
    """The rows of a finished study, whose first trials are worth so much."""
    (folder / "space.yml").write_text(yaml.safe_dump(space))
    where = enqueue(folder, *({"max_grad_norm": worth} for worth in worths))
    given = {"search_space": str(folder / "space.yml"), "n_startup_trials": 1, **where, **settings}
    result = study_of(folder, **given).hyperparameters_optimization()
    rows = rows_of(folder)
    complete = [row for row in rows if row.state == TrialState.COMPLETE]
    assert result.value == max(row.value for row in complete)
    drawn = [tuple(row.params.values()) for row in rows if WARM_START not in row.user_attrs]
    assert len(set(drawn)) == len(drawn)
    return rows


@pytest.mark.parametrize(("sampler", "pruner"), [("cmaes", "halving"), ("gp", "hyperband"), ("random", "successive_halving")])
def test_weak_trials_end_at_a_rung_of_their_bracket(sampler, pruner, ray_instance, tmp_path):
    """The first trial is the best, and so the others end early; what was not enqueued the sampler has drawn."""
    rows = rows_with(tmp_path, NUMBERS, 5.0, 0.2, 0.3, 0.1, sampler=sampler, pruner=pruner, n_trials=6)
    assert len(rows) == 6
    assert rows[0].state == TrialState.COMPLETE
    pruned = [row for row in rows if row.state == TrialState.PRUNED]
    assert pruned
    scheduler = build_scheduler(pruner, MARKS, 1)
    assert all(max(row.intermediate_values) in scheduler.rungs(row.number) for row in pruned)
    assert all(0.1 <= row.params["max_grad_norm"] <= 5.0 for row in rows)
    learned = [row.number for row in rows if any(key.startswith("cma") for key in row.system_attrs)]
    assert bool(learned) is (sampler == "cmaes")


@pytest.mark.parametrize("sampler", ["grid", "auto"])
def test_every_point_of_a_finite_space_is_tried_once(sampler, ray_instance, tmp_path):
    """`auto` is the grid where there are more trials than points; the study ends when it has all of them.

    A warm start is one trial more, which comes first and has what the file says: nothing of what is searched.
    """
    warm = sampler == "auto"
    rows = rows_with(tmp_path, FINITE, sampler=sampler, n_trials=9, options={"warm_start": warm})
    if warm:
        first = rows.pop(0)
        assert (first.state, first.user_attrs[WARM_START]) == (TrialState.COMPLETE, True)
        assert not {"max_grad_norm", "gamma"} & first.user_attrs[HYPERPARAMS].keys()
        assert trained(first) == {"max_grad_norm": 0.5, "gamma": 0.99}  # as the algorithm has it
    points = sorted(tuple(row.params[name] for name in FINITE) for row in rows)
    assert points == [pytest.approx(point) for point in ((1.0, 0.9), (1.0, 0.95), (3.0, 0.9), (3.0, 0.95))]
    assert [row.state for row in rows] == [TrialState.COMPLETE] * 4


def test_the_worst_of_a_population_takes_over_from_the_best(ray_instance, tmp_path, caplog):
    """There is room for one member, so that they go on in turn, and all come to their end."""
    options = {"cpus_per_trial": 4.0}
    rows = rows_with(tmp_path, NUMBERS, 0.5, 4.0, 2.0, pruner="pbt", n_trials=3, options=options)
    assert "as many of its 3 members as fit, --n-jobs aside" in caplog.text
    assert [row.state for row in rows] == [TrialState.COMPLETE] * 3
    assert list(rows[0].intermediate_values) == MARKS
    assert rows[0].user_attrs[PARAMS_AT_END]["max_grad_norm"] != 0.5
    assert abs(rows[0].intermediate_values[100] - rows[0].intermediate_values[20]) > 0.1


def test_a_member_that_is_broken_off_goes_on_with_what_it_had_taken_over(ray_instance, tmp_path):
    """A signal comes at the tenth turn of three members; each goes on with the values of its last checkpoint."""
    turn = {"role": "train", "when": "step", "at": 3}
    planned = plan(tmp_path, *({**turn, "what": what} for what in ["pass"] * 9 + ["SIGINT"]))
    (tmp_path / "driver.pid").write_text(str(os.getpid()))
    (tmp_path / "space.yml").write_text(yaml.safe_dump(NUMBERS))
    where = enqueue(tmp_path, *({"max_grad_norm": worth} for worth in (0.5, 4.0, 2.0)))
    given = {"search_space": str(tmp_path / "space.yml"), "pruner": "pbt", "n_trials": 3, **where, **planned}
    for entrance, missing in (("new", 3), ("resume", 0)):
        options = {"cpus_per_trial": 4.0, "checkpoint_every": 0.0, "entrance": entrance}
        assert study_of(tmp_path, options=options, **given).hyperparameters_optimization().missing == missing
    rows = rows_of(tmp_path)
    assert [row.state for row in rows] == [TrialState.FAIL] * 3 + [TrialState.COMPLETE] * 3
    taken_over = [row for row in rows[:3] if DRAWN in row.user_attrs[CHECKPOINT]]
    assert taken_over
    for row in taken_over:
        checkpoint, goes_on = row.user_attrs[CHECKPOINT], rows[3 + row.number]
        assert goes_on.user_attrs[CONTINUES] == row.number
        after = next(value for step, value in goes_on.intermediate_values.items() if step > checkpoint["mark"])
        worth = checkpoint[DRAWN]["max_grad_norm"]
        assert worth != row.params["max_grad_norm"]
        assert after == pytest.approx(EPISODE * worth, abs=0.1)
