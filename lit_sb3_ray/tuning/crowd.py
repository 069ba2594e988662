"""How many trials a driver has at the same time: as many as Ray has room for now, which changes as nodes come and go."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ray.tune.search import ConcurrencyLimiter, Searcher

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

logger = logging.getLogger(__name__)


class Crowd:
    """Lets a search draw only so many trials ahead.

    Attributes:
        search: The search, to be handed to Tune, which begins as many trials as it may and finds places for them by itself.
    """

    def __init__(self, search: Searcher, at_once: int, count: Callable[[], int] | None = None) -> None:
        """Takes a search.

        Args:
            search: Draws trials.
            at_once: How many may be at work or wait for their place.
            count: Counts anew how many may; None where that never changes.
        """
        self.search = ConcurrencyLimiter(search, max_concurrent=at_once)
        self._count = count

    def follow(self, controller: TuneController) -> None:
        """Looks how many trials there is room for now; those at work stay, however few that is.

        Args:
            controller: Tune's.
        """
        if self._count is None:
            return
        now = max(1, self._count())
        if now == self.search.max_concurrent:
            return
        logger.info("Up to %d trials at once from now on; it was %d", now, self.search.max_concurrent)
        self.search.set_max_concurrency(now)
        controller.update_max_pending_trials(now)
