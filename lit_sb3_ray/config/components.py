"""The wrappers and callbacks that a configuration names: one item or a list, each a path or `{path: arguments}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.signatures import check_keywords, coerce, signature_of
from lit_sb3_ray.errors import ConfigError

Component = tuple[type[Any], dict[str, Any]]
"""A class, and the keyword arguments it is to be built with."""


def resolve_components(value: Any, kind: ClassKind, where: str) -> tuple[Component, ...]:
    """Finds the classes of a wrapper list and checks their arguments.

    Args:
        value: None, one item, or a list of items. An item is a dotted path, a one-key mapping from path to keyword
            arguments, or a class.
        kind: What the classes must be.
        where: The key and the file or flag the value was read from.

    Returns:
        Classes with their arguments, in the order of the list, the innermost wrapper first.

    Raises:
        ConfigError: An item is malformed, leads to no such class, or has arguments the class does not take.
    """
    return tuple(_component(item, kind, where) for item in _items(value))


def resolve_callbacks(value: Any, where: str, algorithm: type[Any] | None = None) -> tuple[Any, ...]:
    """Finds callbacks as `resolve_components` does; callbacks that a Python file has built already are kept as they are.

    Args:
        value: See `resolve_components`; also callbacks.
        where: The key and the file or flag the value was read from.
        algorithm: The class that is to be trained. A callback's class may have a `check_algorithm`, which is asked whether it
            suits; None asks nothing.

    Returns:
        Classes with their arguments, and callbacks.

    Raises:
        ConfigError: As `resolve_components`; also a callback that does not suit the algorithm.
    """
    found = tuple(item if _is_built(item) else _component(item, ClassKind.CALLBACK, where) for item in _items(value))
    if algorithm is None:
        return found
    for item in found:
        cls = item[0] if isinstance(item, tuple) else type(item)
        if cls.__name__ == "StopTrainingOnMaxEpisodes" and any(base.__name__ == "ARS" for base in algorithm.__mro__):
            raise problem("StopTrainingOnMaxEpisodes counts ends of episodes, which ARS does not tell: use n_timesteps", where)
        check = getattr(item[0] if isinstance(item, tuple) else item, "check_algorithm", None)
        try:
            if check is not None:
                check(algorithm)
        except ConfigError as error:
            raise problem(str(error), where) from error
    return found


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _is_built(item: Any) -> bool:
    return not isinstance(item, str | type | Mapping) and isinstance(item, ClassKind.CALLBACK.bases)


def _component(item: Any, kind: ClassKind, where: str) -> Component:
    arguments: Any = {}
    if isinstance(item, Mapping):
        if len(item) != 1:
            raise problem(
                f"expected one path per item, but {dict(item)!r} has {len(item)} keys: check the indentation of the arguments",
                where,
            )
        item, arguments = next(iter(item.items()))
        arguments = {} if arguments is None else arguments
    _check_spaces(item, arguments, where)
    cls = resolve_class(item, kind, where)
    if not isinstance(arguments, Mapping):
        raise problem(f"expected a mapping of arguments for {cls.__name__}, not {arguments!r}", where)
    check_keywords(cls, arguments, _inner(cls, kind), where)
    return cls, {name: _typed(cls, name, value, where) for name, value in arguments.items()}


def _typed(cls: type, name: str, value: Any, where: str) -> Any:
    """Gives an argument the type that the class asks for."""
    parameters = signature_of(cls).parameters
    return coerce(value, parameters[name].annotation, f"{name} of {cls.__name__}, {where}") if name in parameters else value


def _check_spaces(item: Any, arguments: Any, where: str) -> None:
    """Refuses a key and its value that YAML took for one text; a lone colon in the path itself is the path's own."""
    texts = [item] if isinstance(item, str) and (":{" in item or ":[" in item) else []
    if isinstance(arguments, str | Mapping):
        texts += [text for text in ([arguments] if isinstance(arguments, str) else arguments) if ":" in str(text)]
    for text in texts:
        raise problem(f"write a space after the colon: {str(text).replace(':', ': ')!r}, not {text!r}", where)


def _inner(cls: type, kind: ClassKind) -> set[str]:
    """The parameter by which a wrapper gets what it wraps."""
    if kind is ClassKind.CALLBACK:
        return set()
    return set(list(signature_of(cls).parameters)[:1])
