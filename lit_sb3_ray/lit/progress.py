"""One progress bar, in env steps."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from pytorch_lightning.callbacks import ProgressBar
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import safe_mean
from tqdm import tqdm

if TYPE_CHECKING:
    import pytorch_lightning as pl

# Seconds between two redraws, and between two plain lines when the output is no terminal.
REDRAW, LINE_EVERY = 0.2, 10.0


class StepsProgressBar(ProgressBar):
    """Lightning's one progress bar, counting env steps and showing the mean return of the latest episodes.

    It is moved from inside the rollout (see `ProgressStep`), since one iteration may last minutes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self.bar: tqdm[Any] | None = None

    def disable(self) -> None:
        """Shows nothing from now on."""
        self._enabled = False

    def enable(self) -> None:
        """Shows the bar again."""
        self._enabled = True

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draws the bar, from where training stands; a bar that is already there goes on."""
        if self._enabled and self.bar is None:
            session: Any = pl_module.session
            interval = REDRAW if sys.stderr.isatty() else LINE_EVERY
            steps = session.algorithm.num_timesteps
            self.bar = tqdm(
                total=session.total_timesteps, initial=steps, unit="step", mininterval=interval, dynamic_ncols=True
            )

    def advance(self, num_timesteps: int, ep_rew_mean: float | None) -> None:
        """Moves the bar.

        Args:
            num_timesteps: Env steps done.
            ep_rew_mean: Mean return of the latest episodes; None before the first has ended.
        """
        if self.bar is None:
            return
        if ep_rew_mean is not None:
            self.bar.set_postfix({"ep_rew_mean": f"{ep_rew_mean:.2f}"}, refresh=False)
        self.bar.update(num_timesteps - self.bar.n)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Closes the bar when training is over; between two slices it stays."""
        session: Any = pl_module.session
        if self.bar is not None and session.done:
            self.bar.close()
            self.bar = None

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Closes the bar so that the error stands on a line of its own."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


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
            self._move()
        return True

    def _on_training_end(self) -> None:
        self._move()

    def _move(self) -> None:
        finished = self.model.ep_info_buffer
        self.bar.advance(self.model.num_timesteps, safe_mean([info["r"] for info in finished]) if finished else None)
