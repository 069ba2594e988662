"""When checkpoints are taken, which are kept, and how a run folder is put back to one."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluations import cut_evaluations, save_model
from lit_sb3_ray.experiment.metrics import cut_metrics
from lit_sb3_ray.experiment.run_folder import BEST, BEST_STATISTICS, RunFolder, copy_file
from lit_sb3_ray.lit.checkpoint import STATE, read_state, save_checkpoint
from lit_sb3_ray.lit.iteration import Session

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointPlan:
    """When checkpoints are taken and which are kept.

    Attributes:
        freq: Env steps between two; below 1 there are none on the way.
        keep: How many checkpoint folders stay; 0 takes none at all. Models on the way (`rl_model_*`) all stay.
        buffer_limit: Largest replay buffer that a checkpoint holds, in GiB.
    """

    freq: int = -1
    keep: int = 2
    buffer_limit: float = 4.0


class CheckpointSaver(pl.Callback):
    """Saves at the first iteration boundary after each so many env steps."""

    def __init__(self, run: RunFolder, plan: CheckpointPlan, extra: Callable[[], dict[str, Any]]) -> None:
        """Prepares saving.

        Args:
            run: Where to.
            plan: When, and what stays.
            extra: Gives the run's own entries of a checkpoint.
        """
        self.run = run
        self.plan = plan
        self.extra = extra
        self.next_at = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Sets the first step to save at."""
        self.next_at = self._after(trainer.global_step)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Saves if it is time."""
        if self.plan.freq < 1 or trainer.global_step < self.next_at or pl_module.guard.requested:
            return
        self.next_at = self._after(trainer.global_step)
        steps = trainer.global_step
        save_model(pl_module.algorithm, self.run.step_model(steps), self.run.step_statistics(steps))
        self.save(pl_module.session)

    def save(self, session: Session) -> Path | None:
        """Takes a checkpoint now and lets old ones go.

        Args:
            session: The training, at an iteration boundary.

        Returns:
            The checkpoint, or None when none are kept.
        """
        if self.plan.keep < 1:
            return None
        self.run.checkpoints.mkdir(exist_ok=True)
        extra = self.extra() | {"best": self.run.best.exists()}
        folder = self.run.checkpoints / str(session.algorithm.num_timesteps)
        save_checkpoint(folder, session, extra, self.plan.buffer_limit)
        for name in (BEST, BEST_STATISTICS):
            copy_file(self.run.path / name, folder / name)
        for old in list_checkpoints(self.run)[: -self.plan.keep]:
            shutil.rmtree(old)
        logger.info("Checkpoint %s", folder)
        return folder

    def _after(self, num_timesteps: int) -> int:
        return (num_timesteps // self.plan.freq + 1) * self.plan.freq if self.plan.freq > 0 else 0


def list_checkpoints(run: RunFolder) -> list[Path]:
    """The run's whole checkpoints, oldest first."""
    if not run.checkpoints.is_dir():
        return []
    found = [path for path in run.checkpoints.iterdir() if path.name.isdigit() and (path / STATE).exists()]
    return sorted(found, key=lambda path: int(path.name))


def latest_checkpoint(run: RunFolder) -> Path:
    """The checkpoint to go on from.

    Raises:
        ConfigError: There is none.
    """
    found = list_checkpoints(run)
    if not found:
        raise ConfigError(
            f"{str(run.path)!r} has no checkpoint to go on from: checkpoints are taken with --save-freq, when a signal stops "
            "the run, and at its end; a finished model can be a warm start with -i"
        )
    return found[-1]


def rewind(run: RunFolder, checkpoint: Path) -> dict[str, Any]:
    """Puts a run folder back to a checkpoint: what was written later is cut from every file, so that no step appears twice.

    Args:
        run: The run folder.
        checkpoint: One of its checkpoints.

    Returns:
        The run's own entries of the checkpoint.
    """
    state = read_state(checkpoint)
    steps, extra = int(state["num_timesteps"]), dict(state["extra"])
    cut_evaluations(run.evaluations, steps)
    cut_metrics(run.metrics, steps)
    for file in run.path.glob("csv/version_*/metrics.csv"):
        cut_metrics(file, steps)
    for model in run.path.glob("rl_model_*_steps.zip"):
        number = model.stem.removeprefix("rl_model_").removesuffix("_steps")
        if number.isdigit() and int(number) > steps:
            run.step_statistics(int(number)).unlink(missing_ok=True)
            model.unlink()
    for name in (BEST, BEST_STATISTICS):
        copy_file(checkpoint / name, run.path / name)
        if not (checkpoint / name).exists():
            (run.path / name).unlink(missing_ok=True)
    for left in [*run.path.glob(".*.partial*"), *run.checkpoints.glob(".*")]:
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return extra
