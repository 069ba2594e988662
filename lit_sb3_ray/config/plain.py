"""Copies of configuration values, and their plain form that any YAML reader can read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.numerals import to_number


def copy_containers(value: Any) -> Any:
    """Copies dicts, lists and tuples at every depth; what stands in them (classes, callbacks, functions) stays the same."""
    if isinstance(value, Mapping):
        return {key: copy_containers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_containers(item) for item in value]
    if type(value) is tuple:
        return tuple(copy_containers(item) for item in value)
    return value


def to_plain(value: Any) -> Any:
    """Gives a value in dicts, lists, strings, numbers, booleans and None only.

    Tuples become lists, numpy's numbers Python's, classes and functions their dotted paths, our schedules the mappings that
    describe them. Anything else becomes its `repr`.
    """
    if value is None or isinstance(value, bool) or type(value) in (int, float, str):
        return value
    if isinstance(value, str):
        return str(value)
    number = to_number(value)
    if number is not None:
        return number
    if isinstance(value, Mapping):
        return {_plain_key(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value):
        kind = type(value).__name__.removesuffix("Schedule").lower()
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"kind": kind, **{name: to_plain(item) for name, item in fields.items()}}
    return repr(value)


def _plain_key(key: Any) -> Any:
    plain = to_plain(key)
    return plain if isinstance(plain, str | int | float | bool) or plain is None else str(plain)
