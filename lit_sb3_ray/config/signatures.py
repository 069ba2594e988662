"""Constructor signatures, and the checks of keyword arguments against them."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import unknown

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a string", dict: "a mapping", list: "a list"}
_BUILT_IN: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "None": type(None)}


@dataclass(frozen=True)
class Signature:
    """What a class's constructor takes.

    Attributes:
        parameters: By name, without `self`. A class that passes `**kwargs` on takes its base class's parameters too.
        is_open: Whether any further keyword may be given.
    """

    parameters: Mapping[str, inspect.Parameter]
    is_open: bool


def signature_of(cls: type) -> Signature:
    """Reads the constructor signature of a class."""
    return _read_signature(cls)


@lru_cache(maxsize=256)
def _read_signature(cls: type) -> Signature:
    found: dict[str, inspect.Parameter] = {}
    is_open = False
    for owner in cls.__mro__:
        constructor = owner.__dict__.get("__init__")
        if constructor is None or owner is object:
            continue
        try:
            parameters = list(inspect.signature(constructor).parameters.values())[1:]
        except ValueError:  # Constructors written in C may have none.
            return Signature(found, is_open=True)
        for parameter in parameters:
            if parameter.kind not in _VARIADIC:
                found.setdefault(parameter.name, parameter)
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            return Signature(found, is_open=False)
        is_open = True
    return Signature(found, is_open)


def check_keywords(cls: type, kwargs: Mapping[str, Any], given: Collection[str], where: str) -> None:
    """Checks that a constructor takes the keyword arguments, and gets all that it needs.

    Args:
        cls: The class to be built.
        kwargs: The keyword arguments from the configuration.
        given: Names of parameters that are filled in by the program.
        where: The key and the file or flag they were read from.

    Raises:
        ConfigError: A keyword is unknown, is filled in by the program, or one is missing.
    """
    signature = signature_of(cls)
    for name in kwargs:
        if name in given:
            raise problem(f"{name!r} of {cls.__name__} is filled in by the program and cannot be set", where)
        if name not in signature.parameters and not signature.is_open:
            raise unknown(f"{cls.__name__} argument", str(name), set(signature.parameters) - set(given), where)
    for name, parameter in signature.parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in kwargs and name not in given:
            raise problem(f"{cls.__name__} needs the argument {name!r}", where)


def coerce(value: Any, annotation: Any, where: str) -> Any:
    """Gives a value the type that an annotation asks for, where that can be told.

    Numbers in strings become numbers, whole floats become ints where an int is asked for, lists become tuples, strings become
    dicts or classes. A value that fits already is returned as it is.

    Args:
        value: The value from the configuration.
        annotation: The parameter's annotation; one that cannot be judged lets every value pass.
        where: The key and the file or flag the value was read from.

    Raises:
        ConfigError: The value is of another type.
    """
    options = _options(annotation)
    if options is None:
        return value
    fitted, fits = _fit(value, options, where)
    if not fits:
        raise problem(f"expected {' or '.join(_describe(option) for option in options)}, not {value!r}", where)
    if isinstance(fitted, float) and fitted != fitted:
        raise problem("expected a number, not nan", where)
    return fitted


def _options(annotation: Any) -> tuple[Any, ...] | None:
    """The types of a union, or None when one of them cannot be judged."""
    if isinstance(annotation, str):  # The class's module postpones annotations.
        members: tuple[Any, ...] = tuple(_BUILT_IN.get(member.strip(), Any) for member in annotation.split("|"))
    else:
        members = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    return members if all(_is_judged(member) for member in members) else None


def _is_judged(member: Any) -> bool:
    origin = typing.get_origin(member) or member
    if origin in (Any, object, inspect.Parameter.empty) or getattr(origin, "_is_protocol", False):
        return False
    return isinstance(origin, type)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _origins(options: Iterable[Any]) -> set[Any]:
    return {typing.get_origin(option) or option for option in options}


def _fit(value: Any, options: tuple[Any, ...], where: str) -> tuple[Any, bool]:
    origins = _origins(options)
    if value is None:
        return None, type(None) in origins
    if isinstance(value, bool):
        return value, bool in origins
    number = to_number(value)
    if number is not None and origins & {int, float, bool}:
        return _fit_number(value, number, origins)
    if isinstance(value, str) and str not in origins:
        return _fit_text(value, options, origins, where)
    if isinstance(value, list | tuple):
        return _fit_sequence(value, options, origins, where)
    return value, any(_is_instance(value, option) for option in options)


def _fit_number(value: Any, number: int | float, origins: set[Any]) -> tuple[Any, bool]:
    if isinstance(number, int):
        if int in origins or float in origins:
            return number, True
        return bool(number), number in (0, 1)
    if float in origins:
        return number, True
    whole = number.is_integer()
    return (int(number) if whole else value), whole and int in origins


def _fit_text(text: str, options: tuple[Any, ...], origins: set[Any], where: str) -> tuple[Any, bool]:
    if dict in origins:
        parsed = parse_expression(text, where)
        return parsed, isinstance(parsed, dict) or (parsed is None and type(None) in origins)
    if type in origins:
        parsed = parse_expression(text, where)
        if parsed is None and type(None) in origins:
            return None, True
        return _class_value(parsed, options, where), True
    return text, False


def _class_value(value: Any, options: tuple[Any, ...], where: str) -> type[Any]:
    found = resolve_class(value, ClassKind.VALUE, where)
    if not any(_is_instance(found, option) for option in options):
        raise problem(f"{found.__name__} is not {' or '.join(_describe(option) for option in options)}", where)
    return found


def _fit_sequence(value: Any, options: tuple[Any, ...], origins: set[Any], where: str) -> tuple[Any, bool]:
    if list in origins:
        return value, True
    for option in options:
        if (typing.get_origin(option) or option) is tuple:
            return _fit_tuple(value, typing.get_args(option), where)
    return value, any(_is_instance(value, option) for option in options)


def _fit_tuple(value: Any, members: tuple[Any, ...], where: str) -> tuple[Any, bool]:
    if not members or members[-1] is Ellipsis:
        return tuple(value), True
    if len(value) != len(members):
        return value, False
    return tuple(coerce(item, member, where) for item, member in zip(value, members, strict=True)), True


def _is_instance(value: Any, option: Any) -> bool:
    origin = typing.get_origin(option) or option
    if origin is type:
        bases = [base for base in typing.get_args(option) if isinstance(base, type)]
        return isinstance(value, type) and (not bases or issubclass(value, tuple(bases)))
    if origin is typing.get_origin(typing.Callable[..., Any]):
        return callable(value)
    return isinstance(value, origin)


def _describe(option: Any) -> str:
    if option is type(None):
        return "null"
    origin = typing.get_origin(option) or option
    if origin is type:
        names = [base.__name__ for base in typing.get_args(option) if isinstance(base, type)]
        return f"a {' or '.join(names)} class" if names else "a class"
    if origin is tuple:
        members = ", ".join(_describe(member) for member in typing.get_args(option))
        return f"a list of ({members})" if members else "a list"
    return _WORDS.get(origin) or f"a {getattr(origin, '__name__', origin)}"
