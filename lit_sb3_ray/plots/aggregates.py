"""Runs of one kind as one: their evaluations brought to the same env steps, with mean and standard error over runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.evaluations import Evaluations

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """Which evaluations, and which runs, count.

    Attributes:
        max_timesteps: Env steps after which evaluations are left out.
        min_timesteps: Env steps that a run must have come to; 0 or less takes the runs with the most evaluations, and no
            others. Above 0, runs that were evaluated at other steps are brought to those of the run with the fewest.
    """

    max_timesteps: int = 2_000_000
    min_timesteps: int = -1


@dataclass(frozen=True)
class Result:
    """What several runs of one kind came to.

    Attributes:
        timesteps: Env steps of the evaluations, shape `(n_evaluations,)`.
        mean_per_eval: Mean over the episodes of each evaluation of each run, shape `(n_evaluations, n_runs)`.
    """

    timesteps: Array
    mean_per_eval: Array

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return int(self.mean_per_eval.shape[1])

    @property
    def is_finite(self) -> bool:
        """Whether no evaluation has come to NaN or to something infinite."""
        return bool(np.isfinite(self.mean_per_eval).all())

    @property
    def mean(self) -> Array:
        """Mean over runs at each evaluation."""
        return _over_runs(self.mean_per_eval)

    @property
    def std_error(self) -> Array:
        """Standard error of that mean, from the standard deviation over `n_runs`, as rl_zoo3 has it."""
        error: Array = self.mean_per_eval.std(axis=-1) / np.sqrt(self.n_runs)
        return error

    @property
    def last_evals(self) -> Array:
        """The last evaluation of each run, shape `(n_runs,)`."""
        last: Array = self.mean_per_eval[-1]
        return last

    @property
    def std_error_last_eval(self) -> float:
        """Standard error of the mean of the last evaluations."""
        return float(self.std_error[-1])


def aggregate(runs: Mapping[str, Evaluations], limits: Limits) -> Result:
    """Puts runs together.

    Runs that do not count are told by a warning.

    Args:
        runs: Evaluations by run; at least one.
        limits: What counts.

    Raises:
        ConfigError: No run counts.
    """
    chosen = _long_enough(runs, limits) if limits.min_timesteps > 0 else _longest(runs, limits)
    if not chosen:
        raise ConfigError(
            f"no evaluation of {', '.join(runs)} lies between -min {limits.min_timesteps} and -max {limits.max_timesteps}"
        )
    means = np.stack([run.values.mean(axis=-1) for run in chosen], axis=-1)
    return Result(chosen[0].timesteps, means)


def _long_enough(runs: Mapping[str, Evaluations], limits: Limits) -> list[Evaluations]:
    """Runs that came as far as asked for, all at the env steps of the one with the fewest evaluations."""
    kept = []
    for name, run in runs.items():
        if run.timesteps[-1] >= limits.min_timesteps:
            kept.append(run)
        else:
            logger.warning("%s is left out: it ends at %d env steps", name, run.timesteps[-1])
    if not kept:
        return []
    steps = min(kept, key=len).cut(limits.max_timesteps).timesteps
    return [run.resampled(steps) for run in kept] if len(steps) else []


def _longest(runs: Mapping[str, Evaluations], limits: Limits) -> list[Evaluations]:
    """Runs with as many evaluations as the one with the most."""
    cut = {name: run.cut(limits.max_timesteps) for name, run in runs.items()}
    most = max(map(len, cut.values()))
    for name, run in cut.items():
        if len(run) < most:
            logger.warning(
                "%s is left out: %d evaluations, and another run has %d (-min STEPS keeps every run of at least STEPS)",
                *(name, len(run), most),
            )
    return [run for run in cut.values() if len(run) == most > 0]


def _over_runs(values: Array) -> Array:
    mean: Array = values.mean(axis=-1)
    return mean
