"""How large something from strangers is when all that it shares is written out."""

from __future__ import annotations

from collections import deque
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

MOST_VALUES = 1_000_000
"""Values in one pickle, each as often as it is met. A list of twice the same list of twice the same, and so on, is small in
memory, but whoever prints, compares or copies it would never end."""

_LISTS = (list, tuple, set, frozenset, deque)
_WHOLE = (str, bytes, bytearray, int, float, complex, type, Enum, FunctionType, BuiltinFunctionType)


def check_size(value: object) -> None:
    """Checks that something is no larger than it may be.

    Args:
        value: It.

    Raises:
        ValueError: It is, or it contains itself.
        RecursionError: It is nested deeper than Python goes.
    """
    _count(value, {})


def _count(value: object, counts: dict[int, int | None]) -> int:
    parts = _parts(value)
    if not parts:
        return 1
    if id(value) not in counts:
        counts[id(value)] = None
        total = 1 + sum(_count(part, counts) for part in parts)
        if total > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES} values")
        counts[id(value)] = total
    count = counts[id(value)]
    if count is None:
        raise ValueError("it contains itself")
    return count


def _parts(value: Any) -> list[Any]:
    if isinstance(value, _WHOLE):
        return []
    parts = [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, _LISTS) else []
    own = getattr(value, "__dict__", None)
    return [*parts, *own.values()] if isinstance(own, dict) else parts
