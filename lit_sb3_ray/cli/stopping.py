"""Ctrl-C and SIGTERM for commands that end in good order: a note is taken, and the command looks at it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

Step = TypeVar("Step")


@dataclass
class StopRequest:
    """Whether a signal asks for the end.

    Attributes:
        signum: The signal's number; 0 while there is none.
    """

    signum: int = 0

    @property
    def code(self) -> int:
        """The exit code: 0, or 128 + the signal's number."""
        return 128 + self.signum if self.signum else 0


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Takes SIGINT and SIGTERM over; outside of the main thread it does nothing.

    Yields:
        Where a signal is noted. A second one raises `KeyboardInterrupt`.
    """
    request = StopRequest()

    def note(signum: int, frame: FrameType | None) -> None:
        if request.signum:
            raise KeyboardInterrupt
        request.signum = signum

    ours = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)} if ours else {}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Terminated(KeyboardInterrupt):
    """SIGTERM, for what cleans up after Ctrl-C."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Lets SIGTERM interrupt as Ctrl-C does, which Python does not by itself; outside of the main thread it does nothing.

    Raises:
        Terminated: The signal has come.
    """

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except SystemExit as error:
        # As Ray is started, or joined, it puts a handler in the place of this one: that exits with the signal's number.
        if error.code != signal.SIGTERM:
            raise
        raise Terminated from None
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def until_stopped(steps: Iterable[Step], request: StopRequest) -> Iterator[Step]:
    """Takes steps until a signal comes.

    Args:
        steps: The steps.
        request: Where the signal is noted.

    Yields:
        The steps.
    """
    if request.signum:
        return
    for step in steps:
        yield step
        if request.signum:
            return
