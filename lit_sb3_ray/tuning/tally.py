"""How many of a study's trials count so far, without looking again at rows that have ended."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from lit_sb3_ray.tuning.rows import counts

if TYPE_CHECKING:
    from optuna import Study


class Tally:
    """Counts the rows of a study; what has ended never changes, so that only the others are looked at again.

    Args:
        study: The study; other drivers may work on it, too.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._seen = 0
        self._open: list[int] = []
        self._for_nothing: list[int] = []
        self._waits = False

    def wants_more(self, total: int) -> bool:
        """Whether a row waits, or the study has fewer trials than it is to have.

        Args:
            total: How many it is to have.
        """
        self._look()
        return self._waits or self._seen - len(self._for_nothing) < total

    def before(self, number: int) -> int:
        """Counts the trials among the rows before one.

        Args:
            number: That row's number.
        """
        self._look()
        return number - bisect_left(self._for_nothing, number)

    def _look(self) -> None:
        rows = self._study.get_trials(deepcopy=False)
        still_open, self._waits = [], False
        for number in [*self._open, *range(self._seen, len(rows))]:
            row = rows[number]
            if not row.state.is_finished():
                still_open.append(number)
                self._waits = self._waits or row.state.name == "WAITING"
            elif not counts(row):
                insort(self._for_nothing, number)
        self._open, self._seen = still_open, len(rows)
