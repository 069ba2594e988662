"""Arrays and tensors out of a pickle, of plain numbers and text only.

numpy takes a data type's description from a pickle at its word: one that lies about its size, or calls bytes objects, leads to
memory that is not its own. So data types are built here from their codes alone.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from lit_sb3_ray.untrusted.weights import OLD_PICKLES, ZIP, check_pickles

PLAIN_KINDS = "biufcSU"
"""Kinds of data type that are read: truth values, numbers, text of a fixed length."""


def plain_dtype(code: object, align: object = False, copy: object = False) -> np.dtype[Any]:
    """Stands for `numpy.dtype` in a pickle.

    Args:
        code: Such as `f8`.
        align: As numpy writes it; of no meaning for plain types.
        copy: Likewise.

    Returns:
        The data type, an object of its own.

    Raises:
        ValueError: It is no plain one.
    """
    if not isinstance(code, str):
        raise ValueError(f"arrays of {code!r} are not read")
    dtype: np.dtype[Any] = np.dtype(code, copy=True)
    if dtype.kind not in PLAIN_KINDS or dtype.fields or dtype.subdtype:
        raise ValueError(f"arrays of {code!r} are not read")
    return dtype


def set_byte_order(dtype: np.dtype[Any], state: object) -> None:
    """Takes the order of the bytes, and nothing else, out of what numpy wrote of a data type.

    Args:
        dtype: A plain data type; it is changed.
        state: numpy's tuple.

    Raises:
        ValueError: There is no order in it.
    """
    order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
    if not isinstance(order, str) or order not in ("<", ">", "|", "="):
        raise ValueError(f"an array's byte order cannot be {order!r}")
    sizes = (dtype.itemsize, dtype.alignment) if dtype.kind in "SU" else (-1, -1)
    # numpy's stubs do not list what pickle calls.
    dtype.__setstate__((3, order, None, None, None, *sizes, 0))  # type: ignore[attr-defined]


def check_array(state: object) -> None:
    """Checks what numpy is to make an array of; numpy itself sees to it that all bytes are there.

    Args:
        state: numpy's tuple.

    Raises:
        ValueError: Its elements are of no bytes, so that there may be any number of them.
    """
    parts = state if isinstance(state, tuple) else ()
    if any(isinstance(part, np.dtype) and part.itemsize == 0 for part in parts):
        raise ValueError("an array of elements without bytes")


def plain_scalar(dtype: object, content: object = b"") -> Any:
    """Stands for `numpy.core.multiarray.scalar` in a pickle.

    Args:
        dtype: A plain data type.
        content: The bytes.

    Raises:
        ValueError: Either is something else.
    """
    if not isinstance(dtype, np.dtype) or not isinstance(content, bytes) or len(content) != dtype.itemsize:
        raise ValueError("a number that is no plain one")
    return np.frombuffer(content, dtype)[0]


def read_storage(content: object) -> Any:
    """Stands for `torch.storage._load_from_bytes`, which would unpickle anything.

    Args:
        content: What `torch.save` wrote of a tensor's memory, in its old format.

    Raises:
        ValueError: It is no such bytes.
    """
    import torch

    if not isinstance(content, bytes) or content.startswith(ZIP):
        raise ValueError("a tensor whose memory is not as it is in a pickle")
    check_pickles(io.BytesIO(content), OLD_PICKLES)
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


STAND_INS = {
    ("numpy", "dtype"): plain_dtype,
    ("numpy._core.multiarray", "scalar"): plain_scalar,
    ("torch.storage", "_load_from_bytes"): read_storage,
}
"""What a pickle names -> what it gets."""
