"""Samplers and pruners by name, and the env steps at which trials are evaluated."""

import optuna
import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.pruners import PRUNERS, build_pruner, evaluation_marks
from lit_sb3_ray.tuning.samplers import SAMPLERS, build_sampler, choose_sampler


def points(name, seed):
    study = optuna.create_study(sampler=build_sampler(name, seed, 2), direction="maximize")
    study.optimize(lambda trial: -((trial.suggest_float("x", -1, 1) - 0.5) ** 2), n_trials=6)
    return [trial.params["x"] for trial in study.trials]


@pytest.mark.parametrize("name", ["random", "tpe", "cmaes"])
def test_a_sampler_draws_the_same_again_for_the_same_seed(name):
    assert points(name, 3) == points(name, 3) != points(name, 4)


def test_auto_chooses_by_space_and_budget():
    assert choose_sampler("auto", numbers_only=False, n_trials=1000) == "tpe"
    assert choose_sampler("auto", numbers_only=True, n_trials=10) == "tpe"
    assert choose_sampler("auto", numbers_only=True, n_trials=1000) == "cmaes"
    assert {choose_sampler(name, False, 1) for name in SAMPLERS if name not in ("auto", "cmaes")} == {"random", "tpe"}


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'random'"):
        choose_sampler("randm", False, 1)
    with pytest.raises(ConfigError, match="did you mean 'median'"):
        build_pruner("medain", (10,), 0)


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"lit-sb3-ray\[samplers\]"):
        choose_sampler("cmaes", False, 1)


@pytest.mark.parametrize(
    ("n_timesteps", "n_evaluations", "pruner", "marks"),
    [
        (1000, 4, "median", (250, 500, 750, 1000)),
        (1000, 3, "median", (333, 666, 1000)),
        (3, 10, "median", (1, 2, 3)),
        (99_999, None, "median", (99_999,)),
        (250_000, None, "none", (125_000, 250_000)),
        (1000, None, "asha", (200, 400, 600, 800, 1000)),
        (1_000_000, None, "asha", tuple(range(100_000, 1_000_001, 100_000))),
    ],
)
def test_evaluations_are_spread_over_the_budget(n_timesteps, n_evaluations, pruner, marks):
    assert evaluation_marks(n_timesteps, n_evaluations, pruner) == marks


def test_no_evaluation_is_no_trial():
    with pytest.raises(ConfigError, match="n_evaluations must be at least 1, not 0"):
        evaluation_marks(1000, 0, "median")


def ends(pruner, curves, marks):
    """Env steps at which each of the trials, run one after another, is ended; None for those that are not."""
    study = optuna.create_study(pruner=pruner, direction="maximize")
    ended = []
    for curve in curves:
        trial = study.ask()
        for mark, value in zip(marks, curve, strict=True):
            trial.report(value, mark)
            if trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                ended.append(mark)
                break
        else:
            study.tell(trial, curve[-1])
            ended.append(None)
    return ended


MARKS = evaluation_marks(999, 5, "asha")
CURVES = [[10, 11, 12, 13, 14], [20, 21, 22, 23, 24], [15, 15, 15, 15, 15], [1, 2, 3, 4, 5], [30, 31, 32, 33, 34]]


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("none", [None] * 5),
        ("nop", [None] * 5),
        ("median", [None, None, 399, 199, None]),
        ("asha", [None, None, 199, 199, None]),
        ("halving", [None, None, 199, 199, None]),
        ("successive_halving", [None, None, 199, 199, None]),
    ],
)
def test_weak_trials_are_ended_early(name, ended):
    assert ends(build_pruner(name, MARKS, 0), CURVES, MARKS) == ended


def test_the_median_waits_for_its_trials_and_for_a_third_of_the_budget():
    assert ends(build_pruner("median", MARKS, 3), CURVES, MARKS) == [None, None, None, 199, None]
    marks = evaluation_marks(900, 9, "median")
    curves = [[value] * 9 for value in (2, 1)]
    assert ends(build_pruner("median", marks, 0), curves, marks) == [None, 300]


def test_hyperband_ends_some_and_not_the_best():
    ended = ends(build_pruner("hyperband", MARKS, 0), CURVES * 4, MARKS)
    assert any(ended)
    assert ended[4] is None


def test_all_names_are_built():
    assert len({name for name in PRUNERS if build_pruner(name, MARKS, 0)}) == 7
