"""What a pickle from strangers may call, and with what: no more than Python, numpy and torch call to rebuild what they keep.

Most of what is listed is harmless to call, but not cheap: a list of a long range, a layer of a million by a million
weights or a buffer of a billion rows would fill the memory out of a pickle of a hundred bytes. And numpy's own array, given
bytes and told that they are objects, takes them for addresses. So most classes may only be named, or stand for an object that
is made without its constructor.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from enum import Enum, EnumMeta
from typing import Any

import numpy as np

from lit_sb3_ray.untrusted.arrays import STAND_INS as ARRAY_STAND_INS
from lit_sb3_ray.untrusted.sizes import MOST_VALUES

Check = Callable[..., bool]
"""Whether arguments are such as pickles hold; a TypeError says no, too."""

_MADE_BARE = ("gymnasium", "lit_sb3_ray", "sb3_contrib", "stable_baselines3", "torch")
"""Packages with classes in Python, whose objects may be made without their constructor."""
_KEYS = (str, bytes, float, type, Enum, np.number, np.bool_, type(None))
_LONGEST_KEY = 64


def enum_member(owner: object, name: object) -> Any:
    """Stands for `getattr`, by which early versions of Python 3.11 pickle members of enumerations.

    Args:
        owner: The enumeration.
        name: The member's name.

    Raises:
        ValueError: It is no enumeration.
    """
    if not isinstance(owner, EnumMeta) or not isinstance(name, str):
        raise ValueError("only members of enumerations are taken by name")
    return owner[name]


STAND_INS: dict[tuple[str, str], Any] = {**ARRAY_STAND_INS, ("builtins", "getattr"): enum_member}
"""What a pickle names -> what it gets."""


def is_usual(module: str, name: str, arguments: object) -> bool:
    """Tells whether a call is one by which something is rebuilt.

    Args:
        module: The module of what is called, as `classes.canonical` gives it.
        name: Its name there.
        arguments: What it is called with.
    """
    if (module, name) in STAND_INS:
        return isinstance(arguments, tuple)
    check = _CALLS.get((module, name))
    try:
        return check is not None and isinstance(arguments, tuple) and check(*arguments)
    except TypeError:
        return False


def is_made_bare(cls: object, arguments: object) -> bool:
    """Tells whether an object of a class may be made without its constructor, with such arguments.

    Args:
        cls: The class.
        arguments: What `__new__` is called with: the fields of a named tuple, or nothing.
    """
    if not isinstance(cls, type) or not isinstance(arguments, tuple):
        return False
    return cls.__module__.partition(".")[0] in _MADE_BARE and (not arguments or hasattr(cls, "_fields"))


def check_keys(keys: Iterable[object]) -> None:
    """Checks what is to be a key of a dict, or is to be in a set.

    Args:
        keys: The keys.

    Raises:
        ValueError: To hash one may take for ever, as with tuples in tuples, or many of them may have the same hash.
    """
    for key in keys:
        if not isinstance(key, _KEYS) and not (isinstance(key, int) and key.bit_length() <= _LONGEST_KEY):
            raise ValueError(f"a {type(key).__name__} stands where a name or a number is expected")


def _nothing() -> bool:
    return True


def _keys(items: object = ()) -> bool:
    if not isinstance(items, list | tuple):
        return False
    check_keys(items)
    return True


def _bytes(content: object = b"") -> bool:
    return isinstance(content, bytes)


def _numbers(*numbers: object) -> bool:
    return all(number is None or isinstance(number, int | float) for number in numbers)


def _range(*ends: Any) -> bool:
    return all(isinstance(end, int) for end in ends) and len(range(*ends)) <= MOST_VALUES


def _factory(factory: object = None) -> bool:
    return factory is None or isinstance(factory, type)


def _queue(items: object = (), length: object = None) -> bool:
    return isinstance(items, list | tuple) and isinstance(length, int | None)


def _empty_array(cls: object, shape: object, code: object) -> bool:
    return cls is np.ndarray and shape == (0,) and isinstance(code, bytes | str)


def _array(content: object, dtype: object, shape: object, *order: object) -> bool:
    return isinstance(content, bytes | bytearray) and isinstance(dtype, np.dtype) and isinstance(shape, tuple)


def _bit_generator(kind: object = "") -> bool:
    return isinstance(kind, str) or (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator))


def _generator(kind: object = "", maker: object = None) -> bool:
    is_maker = maker is None or getattr(maker, "__name__", "") == "__bit_generator_ctor"
    return is_maker and isinstance(kind, str | np.random.BitGenerator)


def _seeds(cls: object, checksum: object, state: object) -> bool:
    return cls is np.random.SeedSequence and isinstance(checksum, int) and isinstance(state, tuple | None)


def _sizes(sizes: object = ()) -> bool:
    return isinstance(sizes, list | tuple)


def _device(kind: object, index: object = None) -> bool:
    return isinstance(kind, str) and isinstance(index, int | None)


def _tensor(storage: Any, offset: object, size: object, stride: object, *rest: Any) -> bool:
    from torch.storage import TypedStorage

    if not isinstance(size, tuple) or not isinstance(storage, TypedStorage) or any(rest[1:]):
        return False
    with warnings.catch_warnings():
        # torch itself rebuilds tensors of this class, and calls it deprecated whenever others use it.
        warnings.simplefilter("ignore", UserWarning)
        room: int = storage.untyped().nbytes()  # type: ignore[no-untyped-call]
    # torch would make the storage as large as it is told that the tensor is.
    return all(isinstance(length, int) and length >= 0 for length in size) and math.prod(size) <= room


def _parameter(data: object, requires_grad: object, hooks: object) -> bool:
    import torch

    return isinstance(data, torch.Tensor) and isinstance(requires_grad, bool) and not hooks


def _member(value: object) -> bool:
    return isinstance(value, str | int)


_CALLS: dict[tuple[str, str], Check] = {
    ("builtins", "bytes"): _bytes,
    ("builtins", "complex"): _numbers,
    ("builtins", "frozenset"): _keys,
    ("builtins", "range"): _range,
    ("builtins", "set"): _keys,
    ("builtins", "slice"): _numbers,
    ("collections", "OrderedDict"): _nothing,
    ("collections", "defaultdict"): _factory,
    ("collections", "deque"): _queue,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.numeric", "_frombuffer"): _array,
    ("numpy.random._pickle", "__bit_generator_ctor"): _bit_generator,
    ("numpy.random._pickle", "__generator_ctor"): _generator,
    ("numpy.random._pickle", "__randomstate_ctor"): _generator,
    ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"): _seeds,
    ("stable_baselines3.common.type_aliases", "TrainFrequencyUnit"): _member,
    ("stable_baselines3.her.goal_selection_strategy", "GoalSelectionStrategy"): _member,
    ("torch", "Size"): _sizes,
    ("torch", "device"): _device,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
}
