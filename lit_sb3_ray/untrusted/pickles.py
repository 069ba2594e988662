"""Pickles from strangers: read with a list of classes, and refused at the first name that is not on it."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

import numpy as np

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.arrays import STAND_INS, set_byte_order
from lit_sb3_ray.untrusted.classes import canonical, is_allowed, look_up

_BUILD: Callable[[Any], None] = pickle._Unpickler.dispatch[pickle.BUILD[0]]
_FIXED = (type, FunctionType, BuiltinFunctionType)

TRUST = "add --trust if you trust whoever made it"
"""What can be done about a model or statistics that are refused."""


def read_pickle(content: bytes, where: str, remedy: str = TRUST) -> Any:
    """Reads a pickle without running anything but what `classes.ALLOWED` lists.

    Args:
        content: The pickle.
        where: The file, and the place in it, for messages.
        remedy: What can be done about a pickle that is refused.

    Returns:
        The object.

    Raises:
        ConfigError: It names something that is not listed, or it is damaged. Nothing of it was called then but listed classes.
    """
    try:
        return _Reader(io.BytesIO(content), where, remedy).load()
    except ConfigError:
        raise
    # Bytes made to do harm may make the listed classes raise whatever they can raise.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{where} cannot be read: {type(error).__name__}{f': {reason}' if reason else ''}") from error


def refusal(where: str, name: str, remedy: str = TRUST) -> ConfigError:
    """Builds the error for something that would be looked up, and so perhaps run.

    Args:
        where: The file, and the place in it.
        name: What it names.
        remedy: What can be done about it.
    """
    return ConfigError(
        f"{where} was refused and not run: it holds {name}, which is not on the list of classes that are read from others' "
        f"files; {remedy}"
    )


class _Reader(pickle._Unpickler):
    """Python's own reader in Python, of which single steps can be replaced; its names come from the list alone.

    The one written in C would hand an attacker's state to data types, and let attributes of classes be set.
    """

    stack: list[Any]
    # Bound while it loads.
    read: Callable[[int], bytes]
    append: Callable[[Any], None]

    def __init__(self, file: io.BytesIO, where: str, remedy: str) -> None:
        super().__init__(file)
        self._where = where
        self._remedy = remedy

    def find_class(self, module: str, name: str) -> Any:
        """Looks a name up in the list."""
        module = canonical(module)
        stand_in = STAND_INS.get((module, name))
        if stand_in is not None:
            return stand_in
        if not is_allowed(module, name):
            raise refusal(self._where, f"{module}.{name}", self._remedy)
        return look_up(module, name)

    def set_state(self) -> None:
        """Gives an object its state, unless the object is a class or a function, which all would see changed."""
        target = self.stack[-2]
        if isinstance(target, _FIXED):
            raise refusal(self._where, f"a change of {target.__module__}.{target.__qualname__}", self._remedy)
        if isinstance(target, np.dtype):
            set_byte_order(target, self.stack.pop())
        else:
            _BUILD(self)

    def take_bytes(self) -> None:
        """Takes a bytearray as long as what is there; Python makes room first for whatever length is told."""
        (length,) = struct.unpack("<Q", self.read(8))
        content = self.read(min(length, sys.maxsize))
        if len(content) < length:
            raise pickle.UnpicklingError("it ends in the middle of its bytes")
        self.append(bytearray(content))

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **pickle._Unpickler.dispatch,
        pickle.BUILD[0]: set_state,
        pickle.BYTEARRAY8[0]: take_bytes,
    }
