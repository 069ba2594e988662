"""Lightning around Stable-Baselines3. Beyond this package nothing of Lightning is met but callbacks, loggers and profilers.

Its names are imported on first use: whoever evaluates or loads a model needs modules from here, and no Lightning.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lit_sb3_ray.lit.datamodule import RLEnvDataModule
    from lit_sb3_ray.lit.module import RLModule
    from lit_sb3_ray.lit.trainer import RLTrainer

__all__ = ["RLEnvDataModule", "RLModule", "RLTrainer"]

_HOMES = {"RLEnvDataModule": "datamodule", "RLModule": "module", "RLTrainer": "trainer"}


def __getattr__(name: str) -> Any:
    """Imports the module that a name lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
