"""Sending all that a process writes, and the processes it starts, into a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

STREAMS = (1, 2)


class OutputFile:
    """The file that standard output and standard error go to, one after another in the life of a process."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def open(self, path: Path) -> None:
        """Appends everything to a file from now on.

        Args:
            path: The file; its folder is made.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        _flush()
        if not self._before:
            self._before = [os.dup(stream) for stream in STREAMS]
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for stream in STREAMS:
            os.dup2(descriptor, stream)
        os.close(descriptor)

    def close(self) -> None:
        """Lets output go where it went before; a second time does nothing."""
        _flush()
        for stream, before in zip(STREAMS, self._before, strict=False):
            os.dup2(before, stream)
            os.close(before)
        self._before = []


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
