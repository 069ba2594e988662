"""Sending what builds an environment to the process that it will live in, what it is asked there, and what it answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium as gym

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.vec.failures import EnvFailure

EnvFn = Callable[[], gym.Env[Any, Any]]

_DEPTH = 6


def pickle_builder(env_fn: EnvFn, index: int) -> bytes:
    """Pickles a function that builds an environment.

    Args:
        env_fn: The function; it and its classes may have been defined anywhere, a notebook included.
        index: Index of the environment, for the message.

    Returns:
        What `build_pickled` takes.

    Raises:
        ConfigError: The function refers to something that cannot be pickled; the message names that.
    """
    try:
        pickled: bytes = cloudpickle.dumps(env_fn)
    except Exception as error:  # objects may have any reason not to be picklable
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"environment {index} cannot be sent to its actor, since {_offender(env_fn)} cannot be pickled ({reason}): "
            "make it inside the function that builds the environment"
        ) from error
    return pickled


def build_pickled(builder: bytes) -> gym.Env[Any, Any]:
    """Builds an environment from a pickled function."""
    env: gym.Env[Any, Any] = pickle.loads(builder)()
    return env


def dump(value: Any) -> bytes:
    """Pickles what goes to another process; classes and functions that only exist in this one go along by value."""
    pickled: bytes
    try:
        pickled = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        pickled = cloudpickle.dumps(value, protocol=5)
    else:
        # What a script defines is told by its name, which means another script there.
        if b"__main__" in pickled:
            pickled = cloudpickle.dumps(value, protocol=5)
    return pickled


def packed(result: Sequence[Any] | EnvFailure, index: int) -> tuple[bool, bytes]:
    """Pickles what a share has answered.

    Args:
        result: What it has returned; an environment whose part of it cannot be sent has failed.
        index: Index of that environment, the one that was at work last.

    Returns:
        Whether it is a failure, and the mail for the learner; nothing travels for an empty result.
    """
    if not result:
        return False, b""
    if not isinstance(result, EnvFailure):
        try:
            return False, dump(result)
        except Exception as error:  # an environment's values may have any reason not to be sendable
            result = EnvFailure.of(index, "sending what it returned to the learner", error)
    return True, dump(result)


def _offender(env_fn: Any) -> str:
    """Names the innermost part of an object that cannot be pickled."""
    path, part = "the function that builds it", env_fn
    for _ in range(_DEPTH):
        inner = next(((name, value) for name, value in _parts(part) if not _picklable(value)), None)
        if inner is None:
            break
        path, part = f"{inner[0]} of {path}", inner[1]
    return f"{path}, a {type(part).__name__},"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Lists what an object is pickled with."""
    if isinstance(value, partial):
        yield "the function", value.func
        yield from ((f"argument {i}", argument) for i, argument in enumerate(value.args))
        yield from ((f"argument {name!r}", argument) for name, argument in value.keywords.items())
    elif isinstance(value, Mapping):
        yield from ((f"entry {key!r}", entry) for key, entry in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"item {i}", item) for i, item in enumerate(value))
    elif callable(value) and hasattr(value, "__code__"):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((f"variable {name!r}", cell.cell_contents) for name, cell in cells)
        used = value.__code__.co_names
        yield from ((f"global {name!r}", value.__globals__[name]) for name in used if name in value.__globals__)
    elif hasattr(value, "__dict__"):
        yield from ((f"attribute {name!r}", attribute) for name, attribute in vars(value).items())


def _picklable(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:  # objects may have any reason not to be picklable; the answer is what is asked for
        return False
    return True
