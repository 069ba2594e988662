"""Noticing that one of several learners has ended before its time, and why."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from lit_sb3_ray.errors import ConfigError, LearnerError, LearnerGoneError, NonFiniteError
from lit_sb3_ray.experiment.learner import Seat
from lit_sb3_ray.lit.exchange import TICK_S

logger = logging.getLogger(__name__)

# A lost connection is noticed sooner than Ray learns why.
_CAUSE_PATIENCE_S = 5.0


class LearnerWatch:
    """Waits in a thread for the first learner that ends.

    Attributes:
        at_loss: Called in that thread when one has ended.
    """

    def __init__(self, calls: Sequence[Any], seats: Sequence[Seat]) -> None:
        """Starts watching.

        Args:
            calls: The learners' work, from rank 1 on, as Ray's references.
            seats: Where they are.
        """
        self._calls, self._seats = list(calls), seats
        self.at_loss: Callable[[], None] = _do_nothing
        self._ended: Exception | None = None
        self._found = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="learners", daemon=True).start()

    def check(self) -> None:
        """Raises what has ended a learner, if one has ended.

        Raises:
            LearnerError: One is lost.
            ConfigError: One could not build what it was asked to.
            NonFiniteError: One has met NaN.
        """
        if self._ended is not None:
            raise self._ended

    def cause(self, error: LearnerError) -> Exception:
        """Waits a moment for Ray to tell why a learner is lost.

        Args:
            error: What is known without it.
        """
        self._found.wait(_CAUSE_PATIENCE_S)
        return self._ended or error

    def wait_for_all(self, seconds: float) -> None:
        """Waits for all learners to end by themselves.

        Args:
            seconds: How long at most.
        """
        self._closed.set()
        ray.wait(self._calls, num_returns=len(self._calls), timeout=seconds)

    def close(self) -> None:
        """Ends watching."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.is_set():
            ended, _ = ray.wait(self._calls, num_returns=1, timeout=TICK_S)
            if ended and not self._closed.is_set():
                self._ended = self._first_cause()
                self._found.set()
                self.at_loss()
                return

    def _first_cause(self) -> Exception:
        """Why the first one has ended; those that have only lost it may be noticed before it is."""
        deadline, left = time.monotonic() + _CAUSE_PATIENCE_S / 2, list(self._calls)
        consequence: Exception = LearnerError("a learner is lost")
        while left and time.monotonic() < deadline:
            ended, left = ray.wait(left, num_returns=1, timeout=TICK_S)
            for call in ended:
                cause = self._why(self._calls.index(call) + 1, call)
                if not isinstance(cause, LearnerGoneError):
                    return cause
                consequence = cause
        return consequence

    def _why(self, rank: int, call: Any) -> Exception:
        place = f"learner {rank} (process {self._seats[rank - 1].home.pid})"
        try:
            ray.get(call)
        except RayTaskError as error:
            cause: Any = error.cause
            if isinstance(cause, ConfigError | LearnerGoneError | NonFiniteError):
                return cause
            logger.error("%s has failed:\n%s", place, error)
            return LearnerError(f"{place} has failed: {type(cause).__name__}: {cause}")
        except RayError as error:
            return LearnerError(f"{place} has died: {' '.join(str(error).split())}")
        return LearnerError(f"{place} has ended before the others")


def _do_nothing() -> None:
    """Stands in where nobody waits."""
