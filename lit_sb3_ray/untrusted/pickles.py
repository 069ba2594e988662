"""Pickles from strangers: read with a list of classes, and refused at the first name that is not on it."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

import numpy as np

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.arrays import check_array, set_byte_order
from lit_sb3_ray.untrusted.calls import STAND_INS, check_keys, is_made_bare, is_usual
from lit_sb3_ray.untrusted.classes import canonical, is_allowed, look_up
from lit_sb3_ray.untrusted.sizes import check_size

Step = Callable[[Any], None]
"""Carries out one instruction of a pickle."""

_BUILD: Step = pickle._Unpickler.dispatch[pickle.BUILD[0]]
_FIXED = (type, FunctionType, BuiltinFunctionType, Enum)

TRUST = "add --trust if you trust whoever made it"
"""What can be done about a model or statistics that are refused."""


def read_pickle(content: bytes, where: str, remedy: str = TRUST) -> Any:
    """Reads a pickle without running anything but what `classes.ALLOWED` lists, and that as `calls` has it.

    Args:
        content: The pickle.
        where: The file, and the place in it, for messages.
        remedy: What can be done about a pickle that is refused.

    Returns:
        The object.

    Raises:
        ConfigError: It names or calls something that is not listed, is larger than `sizes` allows, or is damaged. Nothing of
            it was called then but listed classes.
    """
    try:
        value = _Reader(io.BytesIO(content), where, remedy).load()
        check_size(value)
    except ConfigError:
        raise
    # Bytes made to do harm may make the listed classes raise whatever they can raise.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{where} cannot be read: {type(error).__name__}{f': {reason}' if reason else ''}") from error
    return value


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


def _states_of(cls: type) -> tuple[type, ...]:
    """The types that the states of a class's objects have; of others a method of the class might make a dict."""
    if cls.__module__.startswith("numpy.random."):
        return (dict, tuple, type(None))
    return (dict, list) if is_dataclass(cls) else (dict,)


def _filling(opcode: bytes, kinds: tuple[type, ...], keys: slice | None = None) -> tuple[int, Step]:
    """An instruction that puts things into a collection: into Python's own only, and with keys that `check_keys` lets pass.

    Args:
        opcode: The instruction.
        kinds: What may be filled.
        keys: Which of the things are keys; None for none.
    """
    step: Step = pickle._Unpickler.dispatch[opcode[0]]
    is_single = opcode in (pickle.APPEND, pickle.SETITEM)

    def fill(reader: _Reader) -> None:
        taken = 2 if opcode == pickle.SETITEM else 1
        items = reader.stack[-taken:] if is_single else reader.stack
        target = reader.stack[-1 - taken] if is_single else reader.metastack[-1][-1]
        # Whatever else has a method of the name would have it called, and that may be an attribute out of the same pickle.
        if type(target) not in kinds:
            raise pickle.UnpicklingError(f"a {type(target).__name__} is no {kinds[0].__name__}")
        if keys is not None:
            check_keys(items[keys])
        step(reader)

    return opcode[0], fill


class _Reader(pickle._Unpickler):
    """Python's own reader in Python, of which single steps can be replaced; its names come from the list alone.

    The one written in C would hand an attacker's state to data types, and let attributes of classes be set.
    """

    stack: list[Any]
    metastack: list[list[Any]]
    # Bound while it loads.
    read: Callable[[int], bytes]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, file: io.BytesIO, where: str, remedy: str) -> None:
        super().__init__(file)
        self._where = where
        self._remedy = remedy
        # What was looked up, by its identity: its module, its name, and itself, which so keeps that identity.
        self._found: dict[int, tuple[str, str, Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Looks a name up in the list."""
        module = canonical(module)
        found = STAND_INS.get((module, name))
        if found is None:
            if not is_allowed(module, name):
                raise refusal(self._where, f"{module}.{name}", self._remedy)
            found = look_up(module, name)
        self._found[id(found)] = (module, name, found)
        return found

    def call(self) -> None:
        """Calls something, if that is how what it makes is rebuilt."""
        arguments = self.stack.pop()
        module, name, function = self._known(self.stack[-1])
        if not is_usual(module, name, arguments):
            raise refusal(self._where, f"a call of {module}.{name} that no model needs", self._remedy)
        self.stack[-1] = function(*arguments)

    def make_bare(self) -> None:
        """Makes an object without its constructor."""
        arguments = self.stack.pop()
        module, name, cls = self._known(self.stack[-1])
        if not is_made_bare(cls, arguments):
            raise refusal(self._where, f"a {module}.{name} made as no model needs it", self._remedy)
        self.stack[-1] = cls.__new__(cls, *arguments)

    def make_otherwise(self) -> None:
        """Refuses the ways to make objects by which no listed class is pickled."""
        raise pickle.UnpicklingError("an object is made as in pickles of long ago")

    def set_state(self) -> None:
        """Gives an object its state, unless the object is a class or a function, which all would see changed."""
        target, state = self.stack[-2:]
        if isinstance(target, _FIXED):
            changed = target if isinstance(target, _FIXED[:-1]) else type(target)
            raise refusal(self._where, f"a change of {changed.__module__}.{changed.__qualname__}", self._remedy)
        if "__setstate__" in getattr(target, "__dict__", ()):
            raise pickle.UnpicklingError("an object that brings along how its state is set")
        if isinstance(target, np.dtype):
            set_byte_order(target, self.stack.pop())
            return
        if isinstance(target, np.ndarray):
            check_array(state)
        elif not isinstance(state, _states_of(type(target))):
            raise pickle.UnpicklingError(f"the state of a {type(target).__name__} is a {type(state).__name__}")
        _BUILD(self)

    def make_set(self) -> None:
        """Makes a frozenset."""
        items = self.pop_mark()
        check_keys(items)
        self.append(frozenset(items))

    def make_dict(self) -> None:
        """Makes a dict out of keys and values, one after another."""
        items = self.pop_mark()
        check_keys(items[::2])
        self.append(dict(zip(items[::2], items[1::2], strict=True)))

    def take_bytes(self) -> None:
        """Takes a bytearray as long as what is there; Python makes room first for whatever length is told."""
        (length,) = struct.unpack("<Q", self.read(8))
        content = self.read(min(length, sys.maxsize))
        if len(content) < length:
            raise pickle.UnpicklingError("it ends in the middle of its bytes")
        self.append(bytearray(content))

    def _known(self, item: Any) -> tuple[str, str, Any]:
        """What was looked up, with its name."""
        if id(item) not in self._found:
            raise pickle.UnpicklingError(f"a {type(item).__name__} stands where a class is expected")
        return self._found[id(item)]

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **pickle._Unpickler.dispatch,
        pickle.REDUCE[0]: call,
        pickle.NEWOBJ[0]: make_bare,
        **dict.fromkeys((pickle.NEWOBJ_EX[0], pickle.OBJ[0], pickle.INST[0]), make_otherwise),
        pickle.BUILD[0]: set_state,
        pickle.BYTEARRAY8[0]: take_bytes,
        pickle.FROZENSET[0]: make_set,
        pickle.DICT[0]: make_dict,
        **dict(
            (
                _filling(pickle.APPEND, (list, deque)),
                _filling(pickle.APPENDS, (list, deque)),
                _filling(pickle.ADDITEMS, (set,), slice(None)),
                _filling(pickle.SETITEM, (dict, OrderedDict, defaultdict), slice(None, None, 2)),
                _filling(pickle.SETITEMS, (dict, OrderedDict, defaultdict), slice(None, None, 2)),
            )
        ),
    }
