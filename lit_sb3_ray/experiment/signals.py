"""SIGINT and SIGTERM: the run stops at a boundary, within seconds, and is saved."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

import pytorch_lightning as pl

from lit_sb3_ray.lit.stop import Interrupted, StopGuard

logger = logging.getLogger(__name__)

# Seconds that the running iteration gets; with two more for saving, a stop takes at most five.
GRACE = 2.5
CAUGHT = (signal.SIGINT, signal.SIGTERM)


class SignalStop(pl.Callback):
    """Turns signals into a stop while it is entered; outside the main thread it does nothing.

    Attributes:
        signum: The signal that came, if one did. A second Ctrl-C interrupts at once, without saving.
    """

    def __init__(self, guard: StopGuard) -> None:
        self.guard = guard
        self.signum: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> SignalStop:
        """Takes the signals over."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in (*CAUGHT, signal.SIGALRM)}
            self._install()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Gives the signals back."""
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Takes SIGTERM back from Lightning, which would end the process without saving."""
        if self._before:
            self._install()

    def _install(self) -> None:
        for number in CAUGHT:
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self.signum is not None and signum == signal.SIGINT:
            raise KeyboardInterrupt
        self.signum = signum
        self.guard.requested = True
        signal.setitimer(signal.ITIMER_REAL, GRACE)

    def _on_alarm(self, signum: int, frame: FrameType | None) -> None:
        if self.guard.running and self.guard.cuts_iteration:
            raise Interrupted
