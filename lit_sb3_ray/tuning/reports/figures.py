"""A study's figures: history, learning curves, importances, slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from lit_sb3_ray.config.problems import reason
from lit_sb3_ray.tuning.reports.axes import Axis, category_axis, number_axis, plain, shortened, usual
from lit_sb3_ray.tuning.reports.charts import Bars, Chart, Figure, Series
from lit_sb3_ray.tuning.reports.importances import importances
from lit_sb3_ray.tuning.reports.record import (
    StudyRecord,
    best_first,
    by_merit,
    curve_of,
    is_drawable,
    last_of,
    prunes,
    true_params,
    value_of,
)
from lit_sb3_ray.tuning.reports.wording import count, cut
from lit_sb3_ray.tuning.rows import TIMESTEPS

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

CURVES, CURVE_POINTS, RULES = 1000, 60, 40
SLICES = 24
FAINT_FROM = 30
_REWARD = "mean reward"


def build_figures(study: StudyRecord) -> list[Figure]:
    """Builds all figures of a study.

    Args:
        study: The study, with any number of trials of any state.

    Returns:
        `history`, `learning_curves`, `importances`, `slices`. One that cannot be built has no panels, and its note says why.
    """
    shares, why_not = importances(study)
    return [
        _guarded(lambda: _history(study), "history", "Optimisation history"),
        _guarded(lambda: _learning_curves(study), "learning_curves", "Learning curves"),
        _guarded(lambda: _importances(shares, why_not), "importances", "Parameter importances"),
        _guarded(lambda: _slices(study, shares), "slices", "Slices"),
    ]


def _guarded(build: Callable[[], Figure], name: str, title: str) -> Figure:
    try:
        return build()
    except Exception as error:  # A study of another system may hold anything; one figure less must not cost the report.
        return Figure(name, title, f"It cannot be drawn: {reason(error)}", ())


def _history(study: StudyRecord) -> Figure:
    complete = [(trial.number, value, trial) for trial in study.trials if (value := value_of(trial)) is not None]
    cut_short = [
        (trial.number, last)
        for trial in study.trials
        if trial.state == TrialState.PRUNED and (last := last_of(trial)) is not None
    ]
    failed = tuple(float(trial.number) for trial in study.trials if trial.state == TrialState.FAIL)
    title = "Optimisation history"
    if not (complete or cut_short or failed):
        return Figure("history", title, "No trial has ended yet.", ())
    values = [value for _, value, _ in complete] + [value for _, value in cut_short]
    y, note = _value_axis(values, study)
    x = number_axis("trial", (float(trial.number) for trial in study.trials))
    best = _so_far([(number, value) for number, value, _ in complete], study.maximize)
    tips = tuple(f"trial {number}: {plain(value)}" for number, value, _ in complete)
    series = (
        Series("pruned", *_columns(cut_short), label="pruned (last value)", marker="cross"),
        Series("failed", failed, tuple(y.low for _ in failed), label="failed", marker="cross"),
        Series("complete", *_columns((number, value) for number, value, _ in complete), label="complete", tips=tips),
        Series("best", *_columns(best), label="best so far", marker="", line="steps"),
    )
    return Figure("history", title, note, (Chart(x, y, series),))


def _learning_curves(study: StudyRecord) -> Figure:
    title = "Learning curves"
    ranked = [(trial, curve) for trial in by_merit(study) if (curve := curve_of(trial))]
    if not ranked:
        return Figure("learning_curves", title, "No trial has been evaluated yet.", ())
    shown = ranked[:CURVES]
    y, note = _value_axis([value for _, curve in shown for _, value in curve], study)
    x = number_axis("env steps", (float(step) for _, curve in shown for step, _ in curve), short=True)
    best = next(iter(best_first(study)), None)
    # The cuts on top of the complete trials, and the best on top of all.
    layered = sorted(reversed(shown), key=lambda pair: (pair[0] is best, pair[0].state == TrialState.PRUNED))
    opacity = 1.0 if len(shown) < FAINT_FROM else max(0.5 * FAINT_FROM / len(shown), 0.12)
    drawn = [_curve(trial, curve, trial is best, opacity) for trial, curve in layered]
    lines = "upright lines are the evaluations"
    notes = [f"A cross is where a trial was pruned; {lines} at which it could be." if prunes(study) else f"The {lines}.", note]
    if any(_went_beyond(trial, curve[-1][0]) for trial, curve in shown):
        notes.append("A value stands at the evaluation that was due; a long rollout has gone further by then.")
    if len(ranked) > CURVES:
        notes.append(f"Shown are the best {CURVES:,} of {len(ranked):,}.")
    rules = tuple(float(mark) for mark in study.marks if x.low <= mark <= x.high)
    chart = Chart(x, y, tuple(drawn), rules if len(rules) <= RULES else ())
    return Figure("learning_curves", title, " ".join(filter(None, notes)), (chart,))


def _went_beyond(trial: FrozenTrial, step: int) -> bool:
    steps = trial.user_attrs.get(TIMESTEPS)
    return steps is not None and is_drawable(steps) and steps > step


def _curve(trial: FrozenTrial, curve: list[tuple[int, float]], is_best: bool, opacity: float) -> Series:
    points = _columns(_thinned(curve))
    last = plain(curve[-1][1])
    tips = (f"trial {trial.number}: {last} after {shortened(curve[-1][0])} env steps ({trial.state.name.lower()})",)
    if is_best:
        return Series("best", *points, label="best", line="straight", at_end=True, tips=tips)
    color, label, marker = {
        TrialState.COMPLETE: ("complete", "complete", "dot"),
        TrialState.PRUNED: ("pruned", "pruned", "cross"),
        TrialState.FAIL: ("failed", "failed", "ring"),
    }.get(trial.state, ("running", "running", "dot"))
    return Series(color, *points, label, marker, "straight", at_end=True, opacity=opacity, tips=tips)  # type: ignore[arg-type]


def _importances(shares: dict[str, float], why_not: str) -> Figure:
    title = "Parameter importances"
    if not shares:
        return Figure("importances", title, why_not, ())
    note = "How much each parameter decides whether a complete trial is among the best tenth (PED-ANOVA), as shares of 1."
    shown = {cut(name, 32): share for name, share in list(shares.items())[:SLICES]}
    return Figure("importances", title, note, (Bars("share", shown),))


def _slices(study: StudyRecord, shares: dict[str, float]) -> Figure:
    title = "Slices"
    ranked = best_first(study)
    names = sorted({name for trial in ranked for name in true_params(trial)}, key=lambda name: (-shares.get(name, 0.0), name))
    if not names:
        return Figure("slices", title, "No complete trial has parameters.", ())
    y, note = _value_axis([value for trial in ranked if (value := value_of(trial)) is not None], study)
    notes = ["Complete trials only; the ring is the best one.", note]
    if len(names) > SLICES:
        notes.append(f"Shown are {SLICES} of {len(names)} parameters.")
    panels = tuple(_slice(ranked, name, y) for name in names[:SLICES])
    return Figure("slices", title, " ".join(filter(None, notes)), panels)


def _slice(ranked: Sequence[FrozenTrial], name: str, y: Axis) -> Chart:
    having = [trial for trial in reversed(ranked) if name in true_params(trial)]
    x, places = _parameter_axis(having, name)
    heights = tuple(value_of(trial) or 0.0 for trial in having)
    tips = tuple(
        f"trial {trial.number}: {cut(trial.params[name], 24)}, {plain(height)}"
        for trial, height in zip(having, heights, strict=True)
    )
    points = Series("complete", places, heights, marker="dot", tips=tips)
    ring = Series("best", places[-1:], heights[-1:], marker="ring") if having[-1] is ranked[0] else None
    return Chart(x, y, (points,) if ring is None else (points, ring))


def _parameter_axis(trials: Sequence[FrozenTrial], name: str) -> tuple[Axis, tuple[float, ...]]:
    """The axis of a parameter, logarithmic where it is drawn so, and the place of each trial on it."""
    values = [trial.params[name] for trial in trials]
    numbers = [
        value for value in values if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]
    distributions = [trial.distributions.get(name) for trial in trials]
    categorical = any(hasattr(distribution, "choices") for distribution in distributions)
    if len(numbers) == len(values) and not categorical:
        log = any(getattr(distribution, "log", False) for distribution in distributions)
        return number_axis(cut(name, 40), map(float, numbers), log=log), tuple(map(float, numbers))
    # Not by value: choices may be lists, and True is equal to 1.
    written = [cut(value, 60) for value in values]
    names = list(
        dict.fromkeys(cut(item, 60) for distribution in distributions for item in getattr(distribution, "choices", ()))
    )
    names += [item for item in dict.fromkeys(written) if item not in names]
    place = {item: index for index, item in enumerate(names)}
    # Spread a little, so that trials of one choice do not hide each other.
    spread = tuple(place[item] + 0.5 * (trial.number * 0.618 % 1 - 0.5) for item, trial in zip(written, trials, strict=True))
    return category_axis(cut(name, 40), names), spread


def _value_axis(values: Sequence[float], study: StudyRecord) -> tuple[Axis, str]:
    covered = usual(values, study.maximize)
    beyond = len(values) - len(covered)
    where = "below" if study.maximize else "above"
    note = f"{count(beyond, 'value')} far {where} the others: drawn at the edge." if beyond else ""
    return number_axis(_REWARD if study.objectives == 1 and study.maximize else "value", covered), note


def _so_far(points: Sequence[tuple[int, float]], maximize: bool) -> list[tuple[int, float]]:
    better = max if maximize else min
    found: list[tuple[int, float]] = []
    for number, value in points:
        found.append((number, better(value, found[-1][1]) if found else value))
    return found


def _thinned(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most `CURVE_POINTS` of a curve's points, the first and the last among them."""
    if len(curve) <= CURVE_POINTS:
        return curve
    share = (len(curve) - 1) / (CURVE_POINTS - 1)
    return [curve[round(index * share)] for index in range(CURVE_POINTS)]


def _columns(points: Iterable[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    listed = list(points)
    return tuple(float(x) for x, _ in listed), tuple(float(y) for _, y in listed)
