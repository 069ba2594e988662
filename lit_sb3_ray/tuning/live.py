"""One table of a running study's trials: drawn in place on a terminal, one line of the log an event elsewhere."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lit_sb3_ray.tuning.rows import FAILURE
from lit_sb3_ray.tuning.trainable import DRAWN, FINISHED, METRIC, NUMBER

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

logger = logging.getLogger(__name__)

REFRESHES_A_SECOND = 2
SHOWN_ROWS = 20
COLUMNS = ("trial", "state", "env steps", "last", "best", "steps/s", "parameters")


@dataclass
class Line:
    """What the table says of one trial.

    Attributes:
        number: The trial's number in the study.
        state: `RUNNING`, or how it has ended.
        params: What it has drawn.
        timesteps: Env steps done.
        last: Its last mean return; None before the first.
        best: Its best.
        speed: Env steps per second.
    """

    number: int
    state: str
    params: dict[str, Any] = field(default_factory=dict)
    timesteps: int = 0
    last: float | None = None
    best: float | None = None
    speed: float = 0.0

    def cells(self) -> list[str]:
        """The line's cells, in the order of `COLUMNS`."""
        last, best = ("-" if value is None else f"{value:.2f}" for value in (self.last, self.best))
        drawn = ", ".join(f"{name}={_short(value)}" for name, value in self.params.items())
        return [str(self.number), self.state, f"{self.timesteps:,}", last, best, f"{self.speed:,.0f}", drawn]


class LiveTable:
    """The table of one driver's trials; shown while it is entered.

    Args:
        total: Trials of the study.
        console: Where it is drawn if that is a terminal; None draws nothing.
    """

    def __init__(self, total: int, console: Console | None) -> None:
        self.lines: dict[str, Line] = {}
        self._total = total
        drawn = console is not None and console.is_terminal
        self._live = (
            Live(console=console, get_renderable=self.table, refresh_per_second=REFRESHES_A_SECOND, auto_refresh=True)
            if drawn
            else None
        )

    def __enter__(self) -> LiveTable:
        """Begins to draw."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leaves the table as it was last."""
        if self._live is not None:
            self._live.stop()

    def changed(self, trial: Trial, state: str) -> None:
        """Notes that a trial is in another state."""
        line = self._line(trial)
        line.state = state
        self._tell(line)

    def reported(self, trial: Trial, result: dict[str, Any]) -> None:
        """Notes a trial's result."""
        line = self._line(trial)
        if FAILURE in result:
            line.state = "FAIL"
        else:
            line.timesteps, line.last = result["timesteps_total"], result[METRIC]
            line.best = line.last if line.best is None else max(line.best, line.last)
            line.speed = result["steps_per_second"]
            if result.get("done"):
                line.state = "COMPLETE" if result.get(FINISHED) else "PRUNED"
        self._tell(line)

    def states(self) -> Counter[str]:
        """How many trials are in each state."""
        return Counter(line.state for line in self.lines.values())

    def table(self) -> Table:
        """What is drawn: trials at work first, then those that have ended last."""
        counted = ", ".join(f"{number} {state.lower()}" for state, number in self.states().items())
        table = Table(title=f"{self._total} trials: {counted or 'none yet'}", title_justify="left", box=None)
        for column in COLUMNS[:-1]:
            table.add_column(column, no_wrap=True, justify="left" if column == "state" else "right")
        table.add_column(COLUMNS[-1], no_wrap=True, overflow="ellipsis", ratio=1)
        for line in sorted(self.lines.values(), key=lambda line: (line.state != "RUNNING", -line.number))[:SHOWN_ROWS]:
            table.add_row(*map(Text, line.cells()))
        return table

    def _line(self, trial: Trial) -> Line:
        config = trial.config
        return self.lines.setdefault(trial.trial_id, Line(config[NUMBER], "RUNNING", dict(config[DRAWN])))

    def _tell(self, line: Line) -> None:
        if self._live is not None:
            return
        number, state, steps, last, best, speed, drawn = line.cells()
        if line.last is None:
            logger.info("Trial %s %s: %s", number, state, drawn)
        else:
            logger.info("Trial %s %s: %s env steps, last %s, best %s, %s steps/s", number, state, steps, last, best, speed)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
