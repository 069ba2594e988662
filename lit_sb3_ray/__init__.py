"""Train, tune and replay Stable-Baselines3 agents with Ray, Optuna and Lightning.

Public names are imported on first use: `import lit_sb3_ray` alone loads neither torch nor Ray.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lit_sb3_ray.config.algorithms import ALGOS
    from lit_sb3_ray.experiment.load import load_run
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.lit.datamodule import RLEnvDataModule
    from lit_sb3_ray.lit.module import RLModule
    from lit_sb3_ray.lit.trainer import RLTrainer
    from lit_sb3_ray.tuning.study import run_study
    from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

__version__ = "0.1.0"

__all__ = [
    "ALGOS",
    "ExperimentManager",
    "RLEnvDataModule",
    "RLModule",
    "RLTrainer",
    "RayVecEnv",
    "__version__",
    "load_run",
    "run_study",
]

_HOMES = {
    "ALGOS": "lit_sb3_ray.config.algorithms",
    "ExperimentManager": "lit_sb3_ray.experiment.manager",
    "RLEnvDataModule": "lit_sb3_ray.lit.datamodule",
    "RLModule": "lit_sb3_ray.lit.module",
    "RLTrainer": "lit_sb3_ray.lit.trainer",
    "RayVecEnv": "lit_sb3_ray.vec.ray_vec_env",
    "load_run": "lit_sb3_ray.experiment.load",
    "run_study": "lit_sb3_ray.tuning.study",
}


def __getattr__(name: str) -> Any:
    """Imports the module that a public name lives in, once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names beside what the module already holds."""
    return sorted({*globals(), *__all__})
