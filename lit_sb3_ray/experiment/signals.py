"""SIGINT and SIGTERM: the run stops at a boundary, within seconds, and is saved."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

import pytorch_lightning as pl

from lit_sb3_ray.lit.stop import LAST_CALL, PATIENCE, Interrupted, StopGuard

logger = logging.getLogger(__name__)

CAUGHT = (signal.SIGINT, signal.SIGTERM)


class StopAtOnce(BaseException):
    """A second Ctrl-C. No `KeyboardInterrupt` yet: Lightning would turn that into exit code 1."""


class SignalStop(pl.Callback):
    """Turns signals into a stop while it is entered; outside the main thread it does nothing.

    The iteration under way gets `PATIENCE` seconds to end by itself. Then its rollout is cut at the next env step, and
    `LAST_CALL` seconds later whatever runs is broken off: a stop takes less than five seconds, saving included.

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
            self.guard.armed = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Gives the signals back.

        Raises:
            KeyboardInterrupt: In place of `StopAtOnce`.
        """
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before = {}
        if isinstance(error, StopAtOnce):
            raise KeyboardInterrupt from None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Takes SIGTERM back from Lightning, which would end the process without saving."""
        if self._before:
            self._install()
            connector: Any = trainer._signal_connector
            connector.received_sigterm = False

    def _install(self) -> None:
        for number in CAUGHT:
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self.signum is not None:
            if signum == signal.SIGINT:
                raise StopAtOnce
            return
        self.signum = signum
        self.guard.requested = True
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def _on_alarm(self, signum: int, frame: FrameType | None) -> None:
        if not self.guard.overdue:
            self.guard.overdue = True
            signal.setitimer(signal.ITIMER_REAL, LAST_CALL)
        elif self.guard.running and self.guard.snapshot is not None:
            raise Interrupted
