"""Waiting for another process: polling first, then sleeping, and learning which of them pays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LONGEST_S = 1e9
"""The longest time limit: operating systems count no further than a few times as much."""

_LEAST_POLL_S = 50e-6
_STOLEN_S = 5e-4  # a look that takes this long has let a process run that is not one of ours
_LEAST_REST_S, _LONGEST_REST_S = 2e-3, 0.1  # without polls after such a look; doubled when the next is one, too
_RECOVERY = 0.95  # of a rest, for each poll that has paid


class Patience:
    """How long to poll before sleeping.

    Args:
        longest: The longest poll, in seconds; 0 sleeps at once.
    """

    def __init__(self, longest: float) -> None:
        self._longest = self._current = longest
        self._poll_from = 0.0
        self._rest = _LEAST_REST_S

    def wait(self, ready: Callable[[], bool], sleep: Callable[[], None]) -> None:
        """Waits.

        Args:
            ready: Tells whether there is nothing to wait for any more.
            sleep: Sleeps until then.
        """
        if not self._longest:
            sleep()
            return
        start = now = time.perf_counter()
        until = start + self._current if start > self._poll_from else start
        while now < until:
            os.sched_yield()
            before, now = now, time.perf_counter()
            if now - before > _STOLEN_S:
                # Somebody else needs this processor, and takes it whenever it is offered. Those who sleep are let run sooner.
                self._poll_from = now + self._rest
                self._rest = min(2 * self._rest, _LONGEST_REST_S)
                break
            if ready():
                self._rest = max(_RECOVERY * self._rest, _LEAST_REST_S)
                return
        sleep()
        if time.perf_counter() - start < self._longest:
            self._current = self._longest
        else:
            self._current = max(self._current / 2, min(_LEAST_POLL_S, self._longest))
