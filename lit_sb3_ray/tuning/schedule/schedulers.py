"""Schedulers by name: what ends a weak trial early. All of them count in env steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import unknown
from lit_sb3_ray.tuning.schedule.brackets import first_rung, hyperband_shares, rungs, turns

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial
    from ray.tune.experiment import Trial

    from lit_sb3_ray.tuning.schedule.judge import Bracket, Judge, Row, TrialKey

SCHEDULERS = ("asha", "halving", "hyperband", "median", "none", "nop", "pbt", "successive_halving")
"""All names. `pbt` is a mode of its own, with `population.build_pbt` in place of `build_scheduler`."""

PRUNES_NOTHING = frozenset({"none", "nop", "pbt"})
"""Those that end no trial early; the members of a population take over each other's states instead."""

HALVING_FACTOR, HYPERBAND_FACTOR = 4, 3


def build_scheduler(
    name: str,
    marks: Sequence[int],
    seed: int,
    n_startup_trials: int = 10,
    key_of: Callable[[Trial], TrialKey] | None = None,
) -> Judge:
    """Builds a scheduler for a `TuneConfig` that names the metric, with mode `max`.

    Args:
        name: `asha`, also called `halving` and `successive_halving`: at each rung, which has four times the env steps of the
            one before, a trial goes on if it is among the best quarter so far. It is Ray's stopping form of ASHA: a trial is
            stopped or goes on at once, none is paused or promoted later. `hyperband`: several such brackets that start to
            compare later and later, with a factor of 3. `median`: a trial ends when its best result is below the
            median of the others' means. `none` and `nop` end nothing.
        marks: Env steps of a trial's evaluations, ascending, the last of them its whole budget.
        seed: For the trials' brackets.
        n_startup_trials: Trials that must have come as far as a trial before `median` ends it.
        key_of: Names a trial so that it has the same name after a resume; None for Tune's id of it.

    Returns:
        The scheduler. A trial with its whole budget behind it is never ended early.

    Raises:
        ConfigError: Unknown name.
        ValueError: `pbt`.
    """
    from lit_sb3_ray.tuning.schedule.judge import Judge

    if name not in SCHEDULERS:
        raise unknown("scheduler", name, SCHEDULERS)
    if name == "pbt":
        raise ValueError("population based training is built by build_pbt")
    if name == "hyperband":
        shares = hyperband_shares(marks, HYPERBAND_FACTOR)
        brackets = [_halving(marks, HYPERBAND_FACTOR, bracket) for bracket in range(len(shares))]
        return Judge(brackets, marks, turns(shares, seed), key_of)
    if name == "median":
        return Judge([_median(marks, n_startup_trials)], marks, key_of=key_of)
    if name in ("none", "nop"):
        return Judge([_nothing()], marks, key_of=key_of)
    return Judge([_halving(marks, HALVING_FACTOR)], marks, key_of=key_of)


def restore_rungs(scheduler: Judge, rows: Iterable[Row]) -> None:
    """Gives a scheduler the memory of an earlier one, so that it decides as that one would have.

    Args:
        scheduler: Made for the same marks, by the same name and seed; whatever it knows itself stays.
        rows: All trials of the study, in the order in which they were begun, with what each has reported, as
            `recorded_rows` gives them. In which order trials reported among each other makes no difference.
    """
    scheduler.learn(rows)


def recorded_rows(trials: Iterable[FrozenTrial]) -> list[tuple[int, list[tuple[int, float]]]]:
    """Reads from the rows of a study what its trials have reported.

    A trial that was broken off and gone on with in other rows is one trial here, by the number of its first row.

    Args:
        trials: All rows of the study.

    Returns:
        By number, env steps and mean reward of each report. Where a stretch was trained twice, the first time counts.
    """
    rows = sorted(trials, key=lambda trial: trial.number)
    earlier = _earlier(rows)
    points: dict[int, dict[int, float]] = {}
    for row in rows:
        known = points.setdefault(_first(earlier, row.number), {})
        for steps, value in row.intermediate_values.items():
            known.setdefault(steps, value)
    return [(number, sorted(known.items())) for number, known in points.items()]


def original_number(trials: Iterable[FrozenTrial], number: int) -> int:
    """Finds the row in which a trial began.

    Args:
        trials: All rows of the study.
        number: One of its rows.

    Returns:
        The number of the row that it goes on with, and so on back to the first; its own if it goes on with none.
    """
    return _first(_earlier(trials), number)


def _earlier(trials: Iterable[FrozenTrial]) -> dict[int, int]:
    """The row that a row goes on with, for those that do."""
    from lit_sb3_ray.tuning.rows import CONTINUES

    return {trial.number: trial.user_attrs[CONTINUES] for trial in trials if CONTINUES in trial.user_attrs}


def _first(earlier: Mapping[int, int], number: int) -> int:
    while number in earlier:
        number = earlier[number]
    return number


def _halving(marks: Sequence[int], factor: int, bracket: int = 0) -> Bracket:
    from ray.tune.schedulers import AsyncHyperBandScheduler

    from lit_sb3_ray.tuning.schedule import judge

    scheduler = AsyncHyperBandScheduler(
        time_attr=judge.TIME,
        metric=judge.VALUE,
        mode=judge.MODE,
        max_t=marks[-1],
        grace_period=first_rung(marks, factor, bracket),
        reduction_factor=factor,
        # Otherwise a trial that has jumped a rung is compared there later, with a result from far beyond it.
        stop_last_trials=False,
    )
    return judge.Bracket(scheduler, rungs(marks, factor, bracket))


def _median(marks: Sequence[int], n_startup_trials: int) -> Bracket:
    from ray.tune.schedulers import MedianStoppingRule

    from lit_sb3_ray.tuning.schedule import judge

    spared = max(len(marks) // 3, 1)
    scheduler = MedianStoppingRule(
        time_attr=judge.TIME,
        metric=judge.VALUE,
        mode=judge.MODE,
        grace_period=marks[spared - 1],
        min_samples_required=max(n_startup_trials, 1),
        min_time_slice=math.inf,  # type: ignore[arg-type]  # It would else pause a trial that it cannot judge yet.
        hard_stop=True,
    )
    return judge.Bracket(scheduler)


def _nothing() -> Bracket:
    from ray.tune.schedulers import FIFOScheduler

    from lit_sb3_ray.tuning.schedule import judge

    return judge.Bracket(FIFOScheduler())  # type: ignore[no-untyped-call]
