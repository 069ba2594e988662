"""Keyword arguments held against the signature of what they are meant for, before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

from lit_sb3_ray.errors import ConfigError, unknown


def accepted_names(target: Callable[..., Any]) -> set[str]:
    """Lists the keywords a callable or class takes, following a class's `**kwargs` up its bases.

    Args:
        target: A function, or a class whose constructor is meant.

    Returns:
        Parameter names; empty when the signature cannot be read.
    """
    makers = [target]
    if isinstance(target, type):
        makers = [vars(base)["__init__"] for base in target.__mro__[:-1] if "__init__" in vars(base)]
    names: set[str] = set()
    for maker in makers:
        try:
            parameters = inspect.signature(maker).parameters.values()
        except (TypeError, ValueError):
            break
        names.update(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return names - {"self"}


def takes_any(target: Callable[..., Any]) -> bool:
    """Tells whether a callable or class has `**kwargs`, or a signature that cannot be read.

    Args:
        target: A function, or a class whose constructor is meant.
    """
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def check_keywords(
    target: Callable[..., Any],
    given: Iterable[str],
    *,
    what: str,
    where: str = "",
    positional: int = 0,
    preset: Collection[str] = (),
    also: Collection[str] = (),
) -> None:
    """Refuses keywords that a callable does not take, and the absence of those it needs.

    A callable with `**kwargs` may take anything, so its unknown names pass.

    Args:
        target: The function or class to be called with the keywords.
        given: The keywords from the configuration.
        what: What a keyword is called in the message, e.g. `"argument of FrameSkip"`.
        where: The file or flag the keywords came from.
        positional: How many leading parameters the caller fills by itself.
        preset: Keywords the caller adds by itself.
        also: Keywords taken on the way, before `target` is reached.

    Raises:
        ConfigError: A keyword is unknown or a required one is missing.
    """
    try:
        parameters = list(inspect.signature(target).parameters.values())[positional:]
    except (TypeError, ValueError):
        return
    given = list(given)
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        takes = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)} | set(also)
        for name in given:
            if name not in takes:
                raise unknown(what, name, takes, where)
    for parameter in parameters:
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if named and parameter.default is parameter.empty and parameter.name not in {*given, *preset}:
            place = f" ({where})" if where else ""
            raise ConfigError(f"missing {what} {parameter.name!r}{place}")
