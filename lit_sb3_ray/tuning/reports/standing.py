"""Where a study stands, for whoever looks at it from another terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lit_sb3_ray.tuning.drivers import Driver, drivers_of
from lit_sb3_ray.tuning.rows import DRIVER, FAILURE, each_once, finished, is_broken_off

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Standing:
    """Where a study stands.

    Attributes:
        name: The study's name.
        states: How many trials are in each state, each by its last row; those that were broken off are `BROKEN OFF`.
        counted: Trials that are over and count towards the total.
        total: Trials the study is to have; None when it does not say.
        drivers: All that have worked on it.
        running: The rows at work, of drivers that live.
        best: The best complete row; None before the first.
        failures: The reasons of failed rows, by number.
    """

    name: str
    states: Counter[str]
    counted: int
    total: int | None
    drivers: list[Driver]
    running: list[FrozenTrial]
    best: FrozenTrial | None
    failures: dict[int, str]

    @property
    def living(self) -> list[Driver]:
        """The drivers at work."""
        return [driver for driver in self.drivers if driver.alive]


def standing_of(study: Study) -> Standing:
    """Looks at a study.

    Args:
        study: The study; one made by another system has no drivers and no total.
    """
    rows = study.get_trials(deepcopy=False)
    drivers = drivers_of(study)
    alive = {driver.id for driver in drivers if driver.alive}
    complete = [row for row in rows if row.state.name == "COMPLETE" and row.value is not None]
    return Standing(
        study.study_name,
        Counter("BROKEN OFF" if is_broken_off(row) else row.state.name for row in each_once(rows)),
        sum(map(finished, rows)),
        study.user_attrs.get("total"),
        drivers,
        [row for row in rows if row.state.name == "RUNNING" and row.user_attrs.get(DRIVER) in alive],
        max(complete, key=lambda row: row.value or float("-inf"), default=None),
        {row.number: str(row.user_attrs[FAILURE]) for row in rows if FAILURE in row.user_attrs},
    )


def told(standing: Standing) -> list[str]:
    """Says where a study stands, a line each thing."""
    of = "" if standing.total is None else f" of {standing.total}"
    states = ", ".join(f"{number} {state.lower()}" for state, number in standing.states.items())
    lines = [f"{standing.name}: {standing.counted}{of} trials are over ({states or 'none begun'})"]
    lines += [f"at work: {driver.told()}, since {_clock(driver.started)}" for driver in standing.living]
    if not standing.living:
        lines.append("nobody is at work on it")
    for row in standing.running:
        steps, value = max(row.intermediate_values.items(), default=(0, None))
        lines.append(f"trial {row.number}: {steps:,} env steps" + ("" if value is None else f", last {value:.2f}"))
    if standing.best is not None:
        lines.append(f"best: trial {standing.best.number} with {standing.best.value:.2f}")
    return [*lines, *(f"trial {number} has failed: {reason}" for number, reason in standing.failures.items())]


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="seconds")
