"""The loggers of one run: SB3's console table and `metrics.csv` always, Lightning's as asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger as LightningLogger
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import HumanOutputFormat, KVWriter, Logger

from lit_sb3_ray.experiment.metrics import MetricsFile
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.lit.loggers import WandbSettings, make_loggers


def attach_sb3_logger(model: BaseAlgorithm, run: RunFolder, verbose: int) -> None:
    """Gives a model SB3's logger, writing to the console (if it may talk) and to the run's `metrics.csv`."""
    outputs: list[KVWriter] = [MetricsFile(run.metrics)]
    # A process without a console has no stdout, or one that is closed.
    if verbose >= 1 and sys.stdout is not None and not sys.stdout.closed:
        outputs.append(HumanOutputFormat(sys.stdout))
    model.set_logger(Logger(folder=None, output_formats=outputs))


def tensorboard_folder(model: BaseAlgorithm, run: RunFolder, tensorboard_log: str) -> Path:
    """The folder of a new TensorBoard run, numbered as SB3 does: `<tensorboard_log>/<E>/<ClassName>_<j>`."""
    home = Path(tensorboard_log) / run.name if tensorboard_log else run.path / "tensorboard"
    name = type(model).__name__
    numbers = [int(found[1]) for path in home.glob(f"{name}_*") if (found := re.fullmatch(rf"{name}_(\d+)", path.name))]
    return home / f"{name}_{max(numbers, default=0) + 1}"


def lightning_loggers(
    asked: Sequence[str | LightningLogger],
    run: RunFolder,
    tensorboard: Path,
    wandb: WandbSettings | None,
    resumed_at: int | None,
) -> list[Any]:
    """Makes the Lightning loggers that were asked for by name; those that are built already stay as they are.

    Args:
        asked: Names and loggers.
        run: The run.
        tensorboard: The folder of its TensorBoard run.
        wandb: Settings for Weights & Biases.
        resumed_at: Env step that a resumed run goes on from; None for a new run.
    """
    names = [item for item in asked if isinstance(item, str)]
    purge = None if resumed_at is None else resumed_at + 1
    made = make_loggers(names, run.path, run.path.name, tensorboard_log=tensorboard, wandb=wandb, purge_step=purge)
    return [*made, *(item for item in asked if not isinstance(item, str))]
