"""Keeping another package from telling what this one tells itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quieter(name: str, level: int) -> Iterator[None]:
    """Raises a logger's level for a while.

    Args:
        name: The logger.
        level: Its level meanwhile, one of `logging`'s.
    """
    told = logging.getLogger(name)
    before = told.level
    told.setLevel(level)
    try:
        yield
    finally:
        told.setLevel(before)
