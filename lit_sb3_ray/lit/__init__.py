"""Lightning around Stable-Baselines3; the only package that imports Lightning."""

from __future__ import annotations

from lit_sb3_ray.lit.datamodule import RLEnvDataModule
from lit_sb3_ray.lit.module import RLModule
from lit_sb3_ray.lit.trainer import RLTrainer

__all__ = ["RLEnvDataModule", "RLModule", "RLTrainer"]
