"""Axes of a chart: their range, whether they are logarithmic, and where their ticks are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lit_sb3_ray.tuning.reports.wording import cut

TICKS = 6
CATEGORIES_NAMED = 8
_MARGIN = 0.04
# Numbers closer than this (in parts of themselves, or at all) are one number to a scale.
_SAME, _TINY = 1e-9, 1e-100


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        label: What it shows.
        low: Its least number.
        high: Its largest, above `low`.
        log: Whether it is logarithmic; `low` is above 0 then.
        ticks: Number and text of each tick.
    """

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()

    def place(self, value: float) -> float:
        """Where a number lies, from 0 (at `low`) to 1 (at `high`); what is beyond an end is put there."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def number_axis(label: str, values: Iterable[float], *, log: bool = False, short: bool = False) -> Axis:
    """Makes an axis that holds the given numbers.

    Args:
        label: What it shows.
        values: The numbers; without any the axis goes from 0 to 1.
        log: Make it logarithmic, if all numbers are above 0.
        short: Write ticks as `20k` and `1.5M`.
    """
    numbers = list(values) or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    tell = shortened if short else plain
    if high - low <= max(abs(low), abs(high)) * _SAME or high - low < _TINY:
        high = low
    if log and low > _TINY:
        margin = max((high / low) ** _MARGIN, 1.05)
        low, high = low / margin, high * margin
        return Axis(label, low, high, True, tuple((tick, tell(tick)) for tick in _log_ticks(low, high)))
    margin = (high - low) * _MARGIN or abs(low) * _MARGIN or 0.5
    low, high = low - margin, high + margin
    return Axis(label, low, high, False, tuple((tick, tell(tick)) for tick in _linear_ticks(low, high)))


def category_axis(label: str, names: Sequence[str]) -> Axis:
    """Makes an axis with the categories at 0, 1, 2, ...; of many, some are named."""
    each = max(math.ceil(len(names) / CATEGORIES_NAMED), 1)
    ticks = tuple((float(place), cut(names[place], 12)) for place in range(0, len(names), each))
    return Axis(label, -0.6, max(len(names) - 1, 0) + 0.6, False, ticks)


def usual(values: Sequence[float], maximize: bool) -> list[float]:
    """Leaves out the few worst values if they lie so far from the rest that they would squash it.

    Args:
        values: The values.
        maximize: Whether large values are good.

    Returns:
        Those that a scale should cover; the others are drawn at its edge.
    """
    if not values:
        return []
    sign = 1.0 if maximize else -1.0
    ordered = sorted(sign * value for value in values)
    tenth, best = ordered[len(ordered) // 10], ordered[-1]
    floor = tenth - 3 * (best - tenth) if best > tenth else ordered[0]
    return [sign * value for value in ordered if value >= floor]


def plain(value: float) -> str:
    """Writes a number with four digits."""
    return f"{value:.4g}"


def shortened(value: float) -> str:
    """Writes a number as `20k` or `1.5M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def _linear_ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    if last - first >= 1:
        each = math.ceil((last - first + 1) / TICKS)
        return [10.0**power for power in range(first, last + 1, each)]
    fine = [
        size * 10.0**power for power in range(first - 1, last + 1) for size in (1, 2, 5) if low <= size * 10.0**power <= high
    ]
    return fine if len(fine) > 1 else [low, high]
