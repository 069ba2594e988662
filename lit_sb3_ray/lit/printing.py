"""What is printed beside a bar: whole lines, for each of which the bar makes way."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, TextIO, cast

from tqdm import tqdm

_STREAMS = ("stdout", "stderr")


class LinesBesideBar:
    """Stands for a stream while a bar is drawn on the terminal; in all but writing it is that stream.

    A line that was begun is held back until it is ended: the bar would be drawn behind it.
    """

    def __init__(self, stream: TextIO) -> None:
        """Stands for a stream.

        Args:
            stream: The stream.
        """
        self._stream = stream
        self._begun = ""
        self._is_over = False
        self._process = os.getpid()
        self._lock = threading.RLock()

    def __eq__(self, other: object) -> bool:
        """Is equal to the stream: so tqdm, which looks for bars on standard output and error, finds those drawn there."""
        # What tqdm wraps a stream in compares itself.
        return True if other is self or other is self._stream else NotImplemented

    def __hash__(self) -> int:
        """As the stream's."""
        return hash(self._stream)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the stream has."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes what ends a line, with the bar out of the way; a process that was forked off has no bar."""
        if self._is_over or os.getpid() != self._process:
            return self._stream.write(text)
        # Not held while the bar's own lock is waited for: whoever has that may be about to write here.
        with self._lock:
            lines, end, self._begun = (self._begun + text).rpartition("\n")
        if end:
            with tqdm.external_write_mode(self._stream):
                self._stream.write(lines + end)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Writes several texts."""
        self.write("".join(lines))

    def end(self) -> None:
        """Writes what was held back; from now on it is the stream itself that writes."""
        self._is_over = True
        if self._begun:
            self._stream.write(self._begun)
            self._begun = ""
        self._stream.flush()


class Redirection:
    """`sys.stdout` and `sys.stderr` beside a bar, from the moment it is made."""

    def __init__(self) -> None:
        """Puts lines beside the bar in the place of both streams."""
        self._before: dict[str, TextIO] = {name: getattr(sys, name) for name in _STREAMS}
        self._now = {name: LinesBesideBar(stream) for name, stream in self._before.items() if stream is not None}
        for name, lines in self._now.items():
            setattr(sys, name, cast("TextIO", lines))

    def end(self) -> None:
        """Puts the streams back; one that somebody else has replaced meanwhile is left as it is."""
        for name, lines in self._now.items():
            lines.end()
            if getattr(sys, name) is lines:
                setattr(sys, name, self._before[name])
