"""Pickles from strangers: read with a list of classes, and refused at the first name that is not on it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

import numpy as np

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.arrays import STAND_INS, set_byte_order
from lit_sb3_ray.untrusted.classes import canonical, is_allowed, look_up

_BUILD: Callable[[Any], None] = pickle._Unpickler.dispatch[pickle.BUILD[0]]
_FIXED = (type, FunctionType, BuiltinFunctionType)


def read_pickle(content: bytes, where: str) -> Any:
    """Reads a pickle without running anything but what `classes.ALLOWED` lists.

    Args:
        content: The pickle.
        where: The file, and the place in it, for messages.

    Returns:
        The object.

    Raises:
        ConfigError: It names something that is not listed, or it is damaged. Nothing of it was called then but listed classes.
    """
    try:
        return _Reader(io.BytesIO(content), where).load()
    except ConfigError:
        raise
    # Bytes made to do harm may make the listed classes raise whatever they can raise.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{where} cannot be read: {type(error).__name__}{f': {reason}' if reason else ''}") from error


def refusal(where: str, name: str) -> ConfigError:
    """Builds the error for something that would be looked up, and so perhaps run.

    Args:
        where: The file, and the place in it.
        name: What it names.
    """
    return ConfigError(
        f"{where} was refused and not run: it holds {name}, which is not on the list of classes that are read from others' "
        "files; add --trust if you trust whoever made it"
    )


class _Reader(pickle._Unpickler):
    """Python's own reader in Python, of which single steps can be replaced; its names come from the list alone.

    The one written in C would hand an attacker's state to data types, and let attributes of classes be set.
    """

    stack: list[Any]

    def __init__(self, file: io.BytesIO, where: str) -> None:
        super().__init__(file)
        self._where = where

    def find_class(self, module: str, name: str) -> Any:
        """Looks a name up in the list."""
        module = canonical(module)
        stand_in = STAND_INS.get((module, name))
        if stand_in is not None:
            return stand_in
        if not is_allowed(module, name):
            raise refusal(self._where, f"{module}.{name}")
        return look_up(module, name)

    def set_state(self) -> None:
        """Gives an object its state, unless the object is a class or a function, which all would see changed."""
        target = self.stack[-2]
        if isinstance(target, _FIXED):
            raise refusal(self._where, f"a change of {target.__module__}.{target.__qualname__}")
        if isinstance(target, np.dtype):
            set_byte_order(target, self.stack.pop())
        else:
            _BUILD(self)

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: set_state}
