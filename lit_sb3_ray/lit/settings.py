"""What RLTrainer hands to Lightning, what it refuses, and what it keeps Lightning from saying."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.plugins import environments

from lit_sb3_ray.errors import ConfigError, unknown

PRECISIONS = ("32-true", "bf16-mixed")
EPOCH_CLOCK = ("max_epochs", "min_epochs", "min_steps")
ONE_PROCESS: dict[str, tuple[object, ...]] = {"devices": (1, "1", "auto"), "num_nodes": (1,), "strategy": ("auto",)}
DEFAULTS: dict[str, Any] = {
    "accelerator": "cpu",
    "devices": 1,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
    "limit_val_batches": 0,
    # EarlyStopping and its like then look after an evaluation instead of after every iteration.
    "val_check_interval": 1,
    "check_val_every_n_epoch": None,
    "log_every_n_steps": 1,
}
# Re-exported by Lightning without saying so, which strict typing refuses by name.
_ENVIRONMENTS: Any = environments

# Lightning walks each batch, here a tick, with a class that torch has renamed; the warning is of no use to anyone here.
warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated")


def check_settings(max_steps: int, precision: str, callbacks: Iterable[pl.Callback], options: dict[str, Any]) -> None:
    """Refuses what has no meaning for an algorithm that counts in env steps and trains in one process.

    Args:
        max_steps: The budget in env steps.
        precision: One of `PRECISIONS`.
        callbacks: Lightning callbacks.
        options: Further arguments of `pl.Trainer`.

    Raises:
        ConfigError: A budget below one step, another clock, an unknown precision, several processes, or a `ModelCheckpoint`
            that would never save.
    """
    if max_steps < 1:
        raise ConfigError(f"max_steps is the budget in env steps and must be at least 1, not {max_steps}")
    for name in EPOCH_CLOCK:
        if name in options:
            raise ConfigError(f"{name} has no meaning here: env steps (max_steps) are the only clock")
    if precision not in PRECISIONS:
        raise unknown("precision", str(precision), PRECISIONS)
    for name, allowed in ONE_PROCESS.items():
        value = options.get(name, allowed[0])
        single = isinstance(value, list) and len(value) == 1
        if not single and not isinstance(value, pl.strategies.SingleDeviceStrategy) and value not in allowed:
            raise ConfigError(f"{name} {value!r}: an algorithm trains in one process, on the device that SB3 gave it")
    for callback in callbacks:
        timed = getattr(callback, "_train_time_interval", None) is not None
        if isinstance(callback, pl.callbacks.ModelCheckpoint) and (timed or getattr(callback, "_every_n_train_steps", 0) > 0):
            raise ConfigError(
                "ModelCheckpoint: every_n_train_steps and train_time_interval would miss most of their steps here, since "
                "global_step grows by whole rollouts; give it a monitor, or save_on_train_epoch_end=True with every_n_epochs"
            )


def own_environment(plugins: Any) -> list[Any]:
    """Adds Lightning's plain environment, without which SLURM's variables would make `pl.Trainer` start a job of its own.

    Args:
        plugins: Lightning plugins.
    """
    given = list(plugins) if isinstance(plugins, list | tuple) else [] if plugins is None else [plugins]
    if any(isinstance(plugin, _ENVIRONMENTS.ClusterEnvironment) for plugin in given):
        return given
    environment = _ENVIRONMENTS.LightningEnvironment()
    # Lightning takes the rank from SLURM's variables when it is imported, and loggers of any rank but 0 stay silent.
    environment.set_global_rank(0)
    return [*given, environment]
