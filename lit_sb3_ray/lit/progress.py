"""Progress in env steps: one bar on a terminal, plain lines elsewhere; both on standard error."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, cast

from pytorch_lightning.callbacks import ProgressBar
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ProgressBarCallback
from stable_baselines3.common.utils import safe_mean
from tqdm import tqdm

from lit_sb3_ray.lit.printing import Redirection
from lit_sb3_ray.lit.state import walk

if TYPE_CHECKING:
    import pytorch_lightning as pl

# Seconds between two redraws, and between two plain lines when the output is no terminal.
REDRAW, LINE_EVERY = 0.2, 10.0


class Display(Protocol):
    """What shows the progress."""

    def move(self, num_timesteps: int, ep_rew_mean: float | None) -> None:
        """Shows where training stands, if it is time to."""

    def close(self) -> None:
        """Shows the last state and ends."""


class Bar:
    """A bar that is drawn over and over on one line; whatever else is printed stands above it."""

    def __init__(self, num_timesteps: int, total_timesteps: int) -> None:
        self.total = total_timesteps
        self.tqdm = tqdm(
            total=total_timesteps, initial=num_timesteps, unit="step", mininterval=REDRAW, dynamic_ncols=True, file=sys.stderr
        )
        self.printing = Redirection()

    def move(self, num_timesteps: int, ep_rew_mean: float | None) -> None:
        """Moves the bar."""
        if ep_rew_mean is not None:
            self.tqdm.set_postfix({"ep_rew_mean": f"{ep_rew_mean:.2f}"}, refresh=False)
        # The last rollout may go beyond the budget, and tqdm draws no bar beyond its total.
        self.tqdm.total = max(self.total, num_timesteps)
        self.tqdm.update(num_timesteps - self.tqdm.n)

    def close(self) -> None:
        """Leaves the bar as it is, with the cursor on the next line."""
        self.tqdm.close()
        self.printing.end()


class Lines:
    """A line of text every now and then, for logs and pipes."""

    def __init__(self, num_timesteps: int, total_timesteps: int) -> None:
        self.total = total_timesteps
        self.first = self.written = num_timesteps
        self.begun = time.monotonic()
        self.due = self.begun + LINE_EVERY
        self.latest: tuple[int, float | None] = (num_timesteps, None)

    def move(self, num_timesteps: int, ep_rew_mean: float | None) -> None:
        """Writes a line if the last one is long ago."""
        self.latest = (num_timesteps, ep_rew_mean)
        if num_timesteps > self.written and time.monotonic() >= self.due:
            self.due = time.monotonic() + LINE_EVERY
            self._write()

    def close(self) -> None:
        """Writes the last state, unless it is written already."""
        if self.latest[0] > self.written:
            self._write()

    def _write(self) -> None:
        steps, ep_rew_mean = self.latest
        rate = (steps - self.first) / max(time.monotonic() - self.begun, 1e-9)
        reward = "" if ep_rew_mean is None else f", ep_rew_mean {ep_rew_mean:.2f}"
        sys.stderr.write(f"{steps:,} of {self.total:,} steps, {rate:,.0f} steps/s{reward}\n")
        sys.stderr.flush()
        self.written = steps


def _has_width() -> bool:
    """Tells whether there is a terminal that a bar can be drawn on; some that nobody looks at have no columns."""
    return sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).columns > 0


class StepsProgressBar(ProgressBar):
    """Lightning's one progress bar, counting env steps and showing the mean return of the latest episodes.

    It is moved from inside the rollout (see `ProgressStep`), since one iteration may last minutes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self.bar: Display | None = None

    def disable(self) -> None:
        """Shows nothing from now on."""
        self._enabled = False

    def enable(self) -> None:
        """Shows the bar again."""
        self._enabled = True

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draws the bar, from where training stands."""
        session: Any = pl_module.session
        self.open(session.algorithm.num_timesteps, session.total_timesteps)

    def open(self, num_timesteps: int, total_timesteps: int) -> None:
        """Draws the bar; one that is already there goes on.

        Args:
            num_timesteps: Env steps done.
            total_timesteps: Env steps at which training ends.
        """
        if self._enabled and self.bar is None:
            kind = Bar if _has_width() else Lines
            self.bar = kind(num_timesteps, total_timesteps)

    def close(self) -> None:
        """Closes the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def advance(self, algorithm: Any) -> None:
        """Moves the bar to where an algorithm stands.

        Args:
            algorithm: An SB3 algorithm; the mean return is that of its latest episodes, once one has ended.
        """
        if self.bar is not None:
            finished = getattr(algorithm, "ep_info_buffer", None)
            self.bar.move(algorithm.num_timesteps, safe_mean([info["r"] for info in finished]) if finished else None)

    def teardown(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        """Closes the bar when training is over or was asked to stop; between two slices it stays."""
        self.advance(pl_module.algorithm)
        if pl_module.session.done or pl_module.guard.requested:
            self.close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Closes the bar so that the error stands on a line of its own."""
        self.advance(cast("Any", pl_module).algorithm)
        self.close()


class ProgressStep(BaseCallback):
    """Moves a progress bar from inside the rollout, a few times a second."""

    def __init__(self, bar: StepsProgressBar) -> None:
        super().__init__()
        self.bar = bar
        self._due = 0.0

    def _on_step(self) -> bool:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + REDRAW
            self.bar.advance(self.model)
        return True

    def _on_training_end(self) -> None:
        self.bar.advance(self.model)


def shows_bar(callbacks: list[BaseCallback]) -> bool:
    """Whether an SB3 callback asks for a bar."""
    return any(isinstance(item, ProgressBarCallback) for callback in callbacks for item in walk(callback))


def without_bars(callbacks: list[BaseCallback]) -> list[BaseCallback]:
    """Leaves out SB3's own bars, for which a `StepsProgressBar` stands.

    Args:
        callbacks: SB3 callbacks; they are not changed.

    Returns:
        The others. A class of a user's own that is derived from SB3's stays, and so does a bar that hangs on an event.
    """
    kept = [callback for callback in callbacks if type(callback) is not ProgressBarCallback]
    return [_list_without_bars(item) if type(item) is CallbackList and shows_bar([item]) else item for item in kept]


def _list_without_bars(callbacks: CallbackList) -> CallbackList:
    return CallbackList(without_bars(callbacks.callbacks))
