"""What the figures of a study show."""

import math
import random
from dataclasses import replace

import made_studies as made
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from lit_sb3_ray.tuning.reports.figures import CURVE_POINTS, CURVES, SLICES, build_figures
from lit_sb3_ray.tuning.reports.record import record

PARAMS = {"learning_rate": 1e-3}


def figures_of(*rows, **settings):
    study = made.new_study(**settings)
    study.add_trials(rows)
    return {figure.name: figure for figure in build_figures(record(study))}


def series_of(figure, label):
    return [series for series in figure.panels[0].series if series.label == label]


def test_history_shows_all_that_ended_and_the_best_so_far():
    rows = [
        made.complete(PARAMS, 1.0),
        made.pruned(PARAMS),
        made.complete(PARAMS, 3.0),
        made.failed(PARAMS),
        made.complete(PARAMS, 2.0),
    ]
    history = figures_of(*rows)["history"]
    assert series_of(history, "complete")[0].x == (0, 2, 4)
    assert series_of(history, "best so far")[0].y == (1.0, 3.0, 3.0)
    assert series_of(history, "pruned (last value)")[0].x == (1,)
    assert series_of(history, "failed")[0].x == (3,)
    minimised = figures_of(*rows, direction="minimize")["history"]
    assert series_of(minimised, "best so far")[0].y == (1.0, 1.0, 1.0)


def test_a_pruned_curve_ends_with_a_cross_at_its_last_rung():
    curves = figures_of(made.complete(PARAMS), made.pruned(PARAMS, 2), made.failed(PARAMS))["learning_curves"]
    (cut,) = series_of(curves, "pruned")
    assert (cut.x, cut.marker, cut.at_end) == ((2000, 4000), "cross", True)
    (best,) = series_of(curves, "best")
    assert best.x == tuple(made.MARKS)
    assert curves.panels[0].rules == tuple(made.MARKS)
    assert curves.panels[0].series[-1] is best


def test_a_rollout_beyond_its_evaluation_is_told():
    beyond = "a long rollout has gone further"
    assert beyond in figures_of(made.complete(PARAMS, num_timesteps=12288))["learning_curves"].note
    assert beyond not in figures_of(made.complete(PARAMS))["learning_curves"].note


def test_importances_find_the_parameter_that_decides():
    study = made.new_study()
    rng = random.Random(1)
    study.add_trials(made.complete(made.drawn(rng)) for _ in range(60))
    (bars,) = {figure.name: figure for figure in build_figures(record(study))}["importances"].panels
    assert next(iter(bars.shares)) == "learning_rate"
    assert bars.shares["learning_rate"] > 0.5
    assert sum(bars.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([made.complete(PARAMS)] * 4, "Importances need at least 5 complete trials; there are 4."),
        ([made.complete(PARAMS)] * 6, "No parameter differs between the complete trials."),
        ([], "Importances need at least 5 complete trials; there are 0."),
    ],
)
def test_without_importances_the_note_says_why(rows, told):
    figure = figures_of(*rows)["importances"]
    assert figure.panels == ()
    assert figure.note == told


def test_a_slice_is_logarithmic_where_the_parameter_is_drawn_so():
    rng = random.Random(1)
    panels = {
        panel.x.label: panel for panel in figures_of(*[made.complete(made.drawn(rng)) for _ in range(8)])["slices"].panels
    }
    assert {label for label, panel in panels.items() if panel.x.log} == {"learning_rate", "one_minus_gamma"}
    assert [word for _, word in panels["net_arch"].x.ticks] == ["tiny", "small", "medium"]
    ring = panels["learning_rate"].series[-1]
    assert (ring.color, len(ring.x)) == ("best", 1)


def test_choices_of_any_kind_are_told_apart():
    choices = (True, 1, None, "x" * 100)
    distribution = CategoricalDistribution(choices)
    rows = [create_trial(params={"c": choice}, distributions={"c": distribution}, value=1.0) for choice in choices]
    (panel,) = figures_of(*rows)["slices"].panels
    assert [word for _, word in panel.x.ticks] == ["True", "1", "None", f"{'x' * 11}…"]
    assert sorted(round(place) for place in panel.series[0].x) == [0, 1, 2, 3]


def test_conditional_parameters_have_the_trials_that_drew_them():
    rows = [made.complete({"learning_rate": 1e-3}, 1.0), made.complete({"n_steps_pow": 7}, 2.0)]
    panels = {panel.x.label: panel for panel in figures_of(*rows)["slices"].panels}
    assert panels["learning_rate"].series[0].y == (1.0,)
    assert [series.color for series in panels["learning_rate"].series] == ["complete"]


def test_of_very_many_curves_points_and_parameters_some_are_shown_and_the_note_says_so():
    long = made.row(TrialState.PRUNED, PARAMS, curve={step: float(step) for step in range(1000)})
    few = figures_of(long)["learning_curves"].panels[0].series[0]
    assert (len(few.x), few.x[0], few.x[-1]) == (CURVE_POINTS, 0, 999)
    many = figures_of(*[made.pruned(PARAMS)] * (CURVES + 5))["learning_curves"]
    assert len(many.panels[0].series) == CURVES
    assert "Shown are the best 1,000 of 1,005." in many.note
    names = [f"p{number}" for number in range(40)]
    wide = create_trial(
        params=dict.fromkeys(names, 0.5), distributions=dict.fromkeys(names, FloatDistribution(0, 1)), value=1.0
    )
    slices = figures_of(wide)["slices"]
    assert len(slices.panels) == SLICES
    assert "Shown are 24 of 40 parameters." in slices.note


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [made.failed(PARAMS)],
        [made.failed({})] * 3,
        [made.complete({}, math.inf), made.complete({}, -math.inf)],
        [made.row(TrialState.PRUNED, {}, curve={1: math.nan})],
        [made.row(TrialState.RUNNING, PARAMS, curve={1: 2.0}), made.row(TrialState.WAITING, {})],
        [made.complete(PARAMS, 0.0)],
        [made.complete({}, value) for value in (1.0, -1e99, 2.0, 3.0, 1e100, 5e-324)],
        [made.complete({"learning_rate": 1e-3 * (number + 1)}, 5.0) for number in range(8)],
    ],
    ids=["none", "failed", "nothing drawn", "infinite", "nan", "open", "one", "huge", "equal"],
)
def test_any_rows_give_figures_or_say_why_not(rows):
    figures = figures_of(*rows)
    assert list(figures) == ["history", "learning_curves", "importances", "slices"]
    for figure in figures.values():
        assert figure.panels or figure.note
        assert "cannot be" not in figure.note


def test_a_figure_that_breaks_costs_no_other():
    odd = create_trial(
        params={"p": 1.0}, distributions={"p": FloatDistribution(0, 1)}, value=1.0, intermediate_values={1: 1.0}
    )
    odd.params = {("not", "a", "name"): 1.0, 3: 2.0}
    study = made.new_study()
    study.add_trials([made.complete(PARAMS)])
    seen = record(study)
    figures = build_figures(replace(seen, attributes={}, trials=(*seen.trials, odd)))
    assert [bool(figure.panels) for figure in figures] == [True, True, False, False]
    assert figures[3].note.startswith("It cannot be drawn: TypeError")
