"""Names of searched hyperparameters: those of the hyperparameter files, with dots that reach inside dicts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.model import MAPPINGS, check_key
from lit_sb3_ray.config.policies import FILLED_IN
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.schedules import SCHEDULE_KEYS
from lit_sb3_ray.config.signatures import signature_of
from lit_sb3_ray.errors import unknown

MERGED = MAPPINGS | {"env_kwargs", "monitor_kwargs"}
"""Dicts of arguments: what is drawn for one of them goes over the file's, and does not replace it."""

DICTS = MERGED | SCHEDULE_KEYS | {"normalize"}
"""Hyperparameters that may be dicts, and whose names dots may follow."""

OF_THE_STUDY = {
    "n_envs": "a trial's resources are reserved for one number of envs: give it with --n-envs",
    "n_timesteps": "all trials have one budget: give it with --n-timesteps",
}
"""Hyperparameters that are the study's, and why."""


def check_name(name: Any, algo: str, where: str) -> None:
    """Checks that a name is that of a hyperparameter, as far as this can be told without an env.

    Args:
        name: The name, such as `gamma` or `policy_kwargs.net_arch`.
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        where: The file or flag it was read from.

    Raises:
        ConfigError: The algorithm has no such hyperparameter, or it holds no dict, or it cannot be searched.
    """
    if not isinstance(name, str) or not all(name.split(".")) or "/" in name or name.split() != [name]:
        raise problem(f"expected the name of a hyperparameter, such as gamma or policy_kwargs.net_arch, not {name!r}", where)
    algorithm = resolve_algorithm(algo)
    key, *inside = name.split(".")
    check_key(key, algorithm, where)
    if key in OF_THE_STUDY:
        raise problem(f"{key!r} cannot be searched: {OF_THE_STUDY[key]}", where)
    if inside and key not in DICTS:
        raise unknown(f"dict of hyperparameters in {name!r}:", key, _dicts_of(algorithm), where)
    if inside and key == "policy_kwargs":
        _check_policy_argument(inside[0], algorithm, where)


def nest(values: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Puts values under their names into hyperparameters.

    Args:
        values: By name, with dots.
        entry: The unprocessed hyperparameters of the file. What they have inside a dict stays where nothing is put over it.

    Returns:
        Hyperparameters by key, to go over the file's: of each dict all of it, of the rest what was given.

    Raises:
        ConfigError: A dict of the file's cannot be read.
    """
    nested: dict[str, Any] = {}
    for name in sorted(values, key=lambda name: name.count(".")):  # A whole dict before what goes inside of it.
        key, *inside = name.split(".")
        value = values[name]
        if key in MERGED and not inside and isinstance(value, str):
            value = parse_expression(value, key)
        below = as_dict(entry.get(key), key) if nested.get(key) is None else nested[key]
        # What is no dict and should be one stays as it is: it is reported when the hyperparameters are resolved.
        if (inside or (key in MERGED and isinstance(value, Mapping))) and isinstance(below, Mapping):
            nested[key] = _put(below, inside, value)
        elif not inside:
            nested[key] = value
    return {key: named(value) for key, value in nested.items()}


def look_up(name: str, hyperparams: Mapping[str, Any]) -> Any:
    """Finds the value under a name with dots; None where there is none."""
    key, *inside = name.split(".")
    value = hyperparams.get(key)
    for part in inside:
        value = as_dict(value, key).get(part)
    return value


def named(value: Any) -> Any:
    """Copies a value with the dotted paths of classes in place of the classes, at every depth: any storage can keep those."""
    if isinstance(value, Mapping):
        return {key: named(item) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item) for item in value]
    if type(value) is tuple:
        return tuple(named(item) for item in value)
    return _path_of(value) if isinstance(value, type) else value


def as_dict(value: Any, key: str) -> dict[str, Any]:
    """Reads a dict, which may be written as an expression; anything that is none counts as empty.

    Args:
        value: The dict.
        key: The hyperparameter, or the argument, that it stands under.

    Raises:
        ConfigError: A string is no readable expression.
    """
    is_expression = isinstance(value, str) and (key in MERGED or value.lstrip().startswith(("dict(", "{")))
    parsed = parse_expression(value, key) if is_expression else value
    return dict(parsed) if isinstance(parsed, Mapping) else {}


def _path_of(cls: type[Any]) -> Any:
    """The path of a class; the class itself where no path leads to it, as from a function."""
    module, name = cls.__module__, cls.__qualname__
    return f"{module}.{name}" if getattr(sys.modules.get(module), name, None) is cls else cls


def _put(holder: Mapping[str, Any], inside: list[str], value: Any) -> dict[str, Any]:
    if not inside:
        return {**holder, **value}
    first, *rest = inside
    return {**holder, first: _put(as_dict(holder.get(first), first), rest, value) if rest else value}


def _dicts_of(algorithm: type[Any]) -> set[str]:
    return {key for key in DICTS if key in signature_of(algorithm).parameters or key in ("env_kwargs", "normalize")}


def _check_policy_argument(name: str, algorithm: type[Any], where: str) -> None:
    """Checks against all policies that the algorithm knows by name: which it will be is the file's business."""
    signatures = [signature_of(cls) for cls in getattr(algorithm, "policy_aliases", {}).values()]
    known = {parameter for signature in signatures for parameter in signature.parameters} - FILLED_IN
    if signatures and name not in known and not any(signature.is_open for signature in signatures):
        raise unknown(f"argument of {algorithm.__name__}'s policies", name, known, f"policy_kwargs, {where}")
