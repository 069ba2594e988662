"""What a study is asked for beyond both ancestors' parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lit_sb3_ray.errors import ConfigError

Entrance = Literal["new", "resume", "join"]


@dataclass(frozen=True)
class StudyOptions:
    """How a study's trials are carried out.

    Attributes:
        cpus_per_trial: CPUs that Ray reserves for a trial's learner.
        gpus_per_trial: 1 for a GPU, or a fraction of one, for a trial's learner; more would be idle.
        max_failures: How often a trial whose actor was lost goes on from its last checkpoint.
        time_budget: Seconds after which the study ends in good order; None for no limit.
        entrance: `new` begins a study; `resume` goes on with one whose driver is dead; `join` works on one whose driver lives.
        warm_start: Whether trial 0 has the file's own hyperparameters.
        checkpoint_every: Seconds of training between two checkpoints of a trial, at least.
        retrain_best: Seeds that the best hyperparameters are trained with again at the end; 0 for none.
        storage_path: Where Tune keeps trials and checkpoints; empty for the study's folder. With several nodes it is shared.
    """

    cpus_per_trial: float = 1.0
    gpus_per_trial: float = 0.0
    max_failures: int = 3
    time_budget: float | None = None
    entrance: Entrance = "new"
    warm_start: bool = False
    checkpoint_every: float = 30.0
    retrain_best: int = 0
    storage_path: str = ""

    def __post_init__(self) -> None:
        """Refuses what has no meaning.

        Raises:
            ConfigError: A number that is out of its range.
        """
        # Ray counts in ten-thousandths.
        if not 1e-4 <= self.cpus_per_trial < math.inf:
            raise ConfigError(f"--cpus-per-trial must be a number of CPUs, 0.0001 or more, not {self.cpus_per_trial:g}")
        if not self.gpus_per_trial >= 0:
            raise ConfigError(f"--gpus-per-trial must not be negative, not {self.gpus_per_trial:g}")
        if self.gpus_per_trial > 1:
            raise ConfigError(f"--gpus-per-trial {self.gpus_per_trial:g}: a trial trains on one GPU; give 1, or a part of one")
        if self.max_failures < 0 or self.retrain_best < 0:
            raise ConfigError("--max-failures and --retrain-best must not be negative")
        if not self.checkpoint_every >= 0:
            raise ConfigError(f"--checkpoint-every must not be negative, not {self.checkpoint_every:g}")
        if self.time_budget is not None and self.time_budget <= 0:
            raise ConfigError(f"--time-budget must be a positive number of seconds, not {self.time_budget:g}")
