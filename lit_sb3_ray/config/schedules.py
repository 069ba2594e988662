"""Schedules: hyperparameters that change as training goes on.

Grammar. A schedule is a number (`0.001` stays what it is); or `lin_START`, which falls from START to 0 in a straight line
over the whole training; or `lin_START_END`, which goes from START to END; `cos_START` and `cos_START_END` do the same along
half a cosine wave, slowly at first and at last. START and END are numbers in Python's notation (`lin_0.001`,
`lin_1e-3_1e-5`). The same as a mapping: `{kind: linear, start: 0.001, end: 0.00001}`, with `kind` one of linear (lin), cosine
(cos) and constant, which takes `value`. Python configuration files may also give a function of the progress remaining, which
runs from 1 to 0. The keys that take a schedule are learning_rate, clip_range, clip_range_vf and delta_std, and any parameter
that an algorithm annotates as a number or a callable.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import unknown

SCHEDULE_KEYS = frozenset({"learning_rate", "clip_range", "clip_range_vf", "delta_std"})
"""Hyperparameters that rl_zoo3 reads as schedules."""


@dataclass(frozen=True, slots=True)
class LinearSchedule:
    """A straight line from `start`, when nothing is done yet, to `end`, when all is done."""

    start: float
    end: float = 0.0

    def __call__(self, progress_remaining: float) -> float:
        """Gives the value at a progress remaining between 1 and 0."""
        return self.end + progress_remaining * (self.start - self.end)


@dataclass(frozen=True, slots=True)
class CosineSchedule:
    """Half a cosine wave from `start`, when nothing is done yet, to `end`, when all is done."""

    start: float
    end: float = 0.0

    def __call__(self, progress_remaining: float) -> float:
        """Gives the value at a progress remaining between 1 and 0."""
        return self.end + (self.start - self.end) * 0.5 * (1.0 - math.cos(math.pi * progress_remaining))


Schedule = Callable[[float], float]

KINDS: dict[str, type[LinearSchedule] | type[CosineSchedule]] = {
    "lin": LinearSchedule,
    "linear": LinearSchedule,
    "cos": CosineSchedule,
    "cosine": CosineSchedule,
}
CONSTANT = "constant"


def parse_schedule(value: object, where: str, *, optional: bool = False) -> Schedule | float | None:
    """Reads a schedule.

    Args:
        value: A number, a string or mapping in this module's grammar, a callable, or None.
        where: The key and the file or flag the value was read from.
        optional: Whether None is a value (clip_range_vf).

    Returns:
        A number as it is (SB3 makes a constant of it), else a callable of the progress remaining; None stays None.

    Raises:
        ConfigError: The value is no schedule.
    """
    if value is None and optional:
        return None
    if isinstance(value, Mapping):
        return _from_mapping(value, where)
    number = to_number(value)
    if number is not None:
        if not abs(number) <= sys.float_info.max:
            raise problem(f"a schedule cannot be {value}", where)
        # Negative numbers keep their type and value: SB2's files switched clipping off with -1, and SB3 judges them itself.
        return number if number < 0 else float(number)
    if isinstance(value, str):
        return _from_text(value.strip(), where)
    if callable(value) and not isinstance(value, type):
        schedule: Schedule = value
        return schedule
    raise problem(f"expected a number or a schedule such as 'lin_0.001', not {value!r}", where)


def _from_text(text: str, where: str) -> Schedule:
    kind, *numbers = text.split("_")
    if kind not in KINDS:
        raise unknown("schedule kind", kind, ["lin", "cos"], f"{text!r}, {where}")
    if not 1 <= len(numbers) <= 2:
        raise problem(f"expected {kind}_START or {kind}_START_END, such as '{kind}_1e-3_1e-5', not {text!r}", where)
    return KINDS[kind](*(_bound(number, text, where) for number in numbers))


def _from_mapping(value: Mapping[object, object], where: str) -> Schedule | float:
    fields = {str(key): item for key, item in value.items()}
    kind = fields.pop("kind", None)
    if kind == CONSTANT:
        allowed, needed = {"value"}, "value"
    elif isinstance(kind, str) and kind in KINDS:
        allowed, needed = {"start", "end"}, "start"
    else:
        raise unknown("schedule kind", str(kind), [*KINDS, CONSTANT], f"{dict(value)!r}, {where}")
    for name in fields:
        if name not in allowed:
            raise unknown(f"field of a {kind} schedule", name, allowed, where)
    if needed not in fields:
        raise problem(f"a {kind} schedule needs {needed!r}, as in {{kind: {kind}, {needed}: 0.001}}", where)
    bounds = {name: _bound(item, item, where) for name, item in fields.items()}
    return bounds["value"] if kind == CONSTANT else KINDS[str(kind)](**bounds)


def _bound(item: object, shown: object, where: str) -> float:
    number = to_number(item)
    if number is None or not 0 <= number <= sys.float_info.max:
        raise problem(f"a schedule goes between finite numbers from 0 up, not {item!r} in {shown!r}", where)
    return float(number)
