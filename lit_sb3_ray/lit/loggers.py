"""Where metrics go: SB3's logger keeps collecting them, Lightning's loggers receive them at their env step."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger
from stable_baselines3.common.logger import Figure, HParam, Image, KVWriter, Video

from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    import pytorch_lightning as pl

LOGGERS = ("tensorboard", "csv", "wandb", "mlflow")


@dataclass(frozen=True)
class WandbSettings:
    """How a run appears on Weights & Biases.

    Attributes:
        project: Project name.
        name: Run name.
        entity: User or team; None for the account's default.
        group: Group of runs; None for none.
        tags: Tags of the run.
        config: Entries of the run's configuration page.
    """

    project: str = "sb3"
    name: str | None = None
    entity: str | None = None
    group: str | None = None
    tags: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)


def make_loggers(
    names: Sequence[str],
    run: Path,
    run_name: str,
    *,
    tensorboard_log: Path | None = None,
    wandb: WandbSettings | None = None,
    purge_step: int | None = None,
) -> list[Logger]:
    """Makes Lightning loggers.

    Args:
        names: Which of `LOGGERS`.
        run: The run folder.
        run_name: Name of the run at tracking services.
        tensorboard_log: Folder that gets the TensorBoard run; the run folder when None.
        wandb: Settings of the `wandb` logger.
        purge_step: A resumed run's first env step: TensorBoard forgets what the same run logged from there on.

    Returns:
        The loggers, in the order of `names`.

    Raises:
        ConfigError: An unknown name, or a logger whose package is missing.
    """
    return [
        _make_logger(name, run, run_name, tensorboard_log, wandb or WandbSettings(name=run_name), purge_step)
        for name in dict.fromkeys(names)
    ]


def check_loggers(names: Sequence[str]) -> None:
    """Checks that the loggers exist and their packages are installed.

    Raises:
        ConfigError: An unknown name, a logger whose package is missing, or one that nobody is logged in to.
    """
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS, "--logger")
    found = {name: importlib.util.find_spec(name) is not None for name in ("wandb", "mlflow", "tensorboardX", "tensorboard")}
    for name in ("wandb", "mlflow"):
        if name in names and not found[name]:
            raise ConfigError(f"logger {name!r} needs the package {name}: pip install 'lit-sb3-ray[{name}]'")
    if "wandb" in names and os.environ.get("WANDB_MODE") not in ("offline", "disabled", "dryrun"):
        import wandb

        if not wandb.login(prompt=False):
            raise ConfigError("logger 'wandb' needs a login: run `wandb login`, or set WANDB_MODE=offline")
    if "tensorboard" in names and not (found["tensorboardX"] or found["tensorboard"]):
        raise ConfigError("logger 'tensorboard' needs the package tensorboardX or tensorboard: pip install tensorboardX")


def _make_logger(
    name: str, run: Path, run_name: str, tensorboard_log: Path | None, wandb: WandbSettings, purge_step: int | None
) -> Logger:
    check_loggers([name])
    if name == "tensorboard":
        folder = tensorboard_log or run / "tensorboard"
        options: dict[str, Any] = {} if purge_step is None else {"purge_step": purge_step}
        return TensorBoardLogger(folder.parent, name="", version=folder.name, default_hp_metric=False, **options)
    if name == "csv":
        return CSVLogger(run, name="csv")
    if name == "wandb":
        from pytorch_lightning.loggers import WandbLogger

        options = {"entity": wandb.entity, "group": wandb.group, "tags": list(wandb.tags), "config": wandb.config}
        return WandbLogger(project=wandb.project, name=wandb.name or run_name, save_dir=str(run), **options)
    return _mlflow_logger(run, run_name)


def _mlflow_logger(run: Path, run_name: str) -> Logger:
    """Logs to `MLFLOW_TRACKING_URI`, or to files in the run folder: mlflow-skinny brings no database."""
    from mlflow.tracking import MlflowClient
    from pytorch_lightning.loggers import MLFlowLogger

    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"file:{(run / 'mlruns').absolute()}"
    if uri.startswith("file:"):
        # mlflow 3 refuses files unless it is told that they are meant.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    experiment, client = run.parent.name, MlflowClient(uri)
    # Lightning would make it too, with a warning.
    if client.get_experiment_by_name(experiment) is None:
        client.create_experiment(experiment)
    return MLFlowLogger(experiment, run_name, uri)


@contextmanager
def finishing_wandb(names: Sequence[object]) -> Iterator[None]:
    """Ends the Weights & Biases run that a `wandb` logger begins; left open, it would take the next run's metrics too.

    Args:
        names: The names of the loggers that are made meanwhile; others in it are not looked at.
    """
    if "wandb" not in names:
        yield
        return
    import wandb

    outer = wandb.run
    exit_code = 1
    try:
        yield
        exit_code = 0
    finally:
        if wandb.run is not outer:
            wandb.finish(exit_code)


class LightningWriter(KVWriter):
    """Hands what SB3's logger dumps to a trainer's loggers, at the env step of the dump.

    Attributes:
        fresh: Scalars dumped since they were last taken, for Lightning's callback metrics.
    """

    def __init__(self, trainer: pl.Trainer) -> None:
        self.trainer = trainer
        self.fresh: dict[str, float] = {}

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Logs one dump.

        Args:
            key_values: Metric names and values.
            key_excluded: Per metric, the outputs that do not want it.
            step: The env step.
        """
        scalars = {key: float(value) for key, value in key_values.items() if _is_scalar(value)}
        self.fresh.update(scalars)
        for logger in self.trainer.loggers:
            quiet = _unwanted(logger, key_excluded)
            logger.log_metrics({key: value for key, value in scalars.items() if key not in quiet}, step=step)
            if isinstance(logger, TensorBoardLogger):
                for key in key_values.keys() - scalars.keys() - quiet:
                    _write_media(logger, key, key_values[key], step)
            logger.save()

    def close(self) -> None:
        """Does nothing: the trainer finalises its loggers."""


def _unwanted(logger: Logger, key_excluded: dict[str, tuple[str, ...]]) -> set[str]:
    """The metrics that were recorded with a wish to keep them from an output of the logger's kind."""
    kinds = {"tensorboard": TensorBoardLogger, "csv": CSVLogger}
    mine = {name for name, kind in kinds.items() if isinstance(logger, kind)}
    return {key for key, names in key_excluded.items() if mine.intersection(names or ())}


def _is_scalar(value: object) -> bool:
    return isinstance(value, int | float | np.number)


def _write_media(logger: TensorBoardLogger, key: str, value: object, step: int) -> None:
    board: Any = logger.experiment
    if isinstance(value, str):
        board.add_text(key, value, step)
    elif isinstance(value, Video):
        _write_video(board, key, value, step)
    elif isinstance(value, Figure):
        board.add_figure(key, value.figure, step, close=value.close)
    elif isinstance(value, Image):
        board.add_image(key, value.image, step, dataformats=value.dataformats)
    elif isinstance(value, HParam):
        logger.log_hyperparams(dict(value.hparam_dict), dict(value.metric_dict))
    elif hasattr(value, "detach"):
        board.add_histogram(key, value, step)


def _write_video(board: Any, key: str, video: Video, step: int) -> None:
    """Encodes with tensorboardX where both packages are installed: torch's writer, which is used then, knows no moviepy 2."""
    torchs = not type(board).__module__.startswith("tensorboardX")
    if not torchs or importlib.util.find_spec("tensorboardX") is None:
        board.add_video(key, video.frames, step, video.fps)
        return
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboardX.summary import video as encode

    encoded = encode(key, video.frames, video.fps)
    board.file_writer.add_summary(Summary.FromString(encoded.SerializeToString()), step)
