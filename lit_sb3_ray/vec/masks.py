"""Action masks in shared memory, in the form in which the environment has made them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lit_sb3_ray.vec.batch import CODE_OF, DTYPES

METHOD: Final = "action_masks"  # sb3-contrib's name

# Forms of a mask in memory. Higher ones are arrays, whose type is the rest.
_NONE, _LIST, _ARRAY = 0, 1, 2


def write_mask(value: Any, memory: np.ndarray[Any, Any], entries: int) -> int:
    """Writes a mask into a row of memory.

    Args:
        value: What an environment's `action_masks` has returned.
        memory: The row.
        entries: How many entries a mask has.

    Returns:
        The form for `read_mask`; 0 when the value is none that memory can hold and give back exactly.
    """
    if type(value) is np.ndarray and value.shape == (entries,) and value.dtype in CODE_OF:
        code: int = CODE_OF[value.dtype]
        memory[: value.nbytes].view(value.dtype)[:] = value
        return _ARRAY + code
    if type(value) is list and len(value) == entries and all(type(entry) is bool for entry in value):
        memory[:entries] = value
        return _LIST
    return _NONE


def read_mask(form: int, memory: np.ndarray[Any, Any], entries: int) -> Any:
    """Reads a mask that `write_mask` has written; the copy is the caller's."""
    if form == _LIST:
        return memory[:entries].astype(np.bool_).tolist()
    dtype = DTYPES[form - _ARRAY]
    return memory[: entries * dtype.itemsize].view(dtype).copy()
