"""Pruners by name: what ends a weak trial early. All of them count in env steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

PRUNERS = ("asha", "halving", "hyperband", "median", "none", "nop", "successive_halving")

# A trial gets so many evaluations when none are asked for: one each so many env steps, and enough for `asha` to prune at all.
STEPS_PER_EVALUATION = 100_000
ASHA_EVALUATIONS = 5


def build_pruner(name: str, marks: Sequence[int], n_startup_trials: int) -> BasePruner:
    """Builds a pruner.

    Args:
        name: `asha`, `halving` and `successive_halving` keep the best quarter at each rung; `hyperband` runs several such
            brackets; `median` ends what is below the median of earlier trials; `none` and `nop` end nothing.
        marks: Env steps of a trial's evaluations, the last of them its whole budget.
        n_startup_trials: Trials that `median` waits for.

    Raises:
        ConfigError: Unknown name.
    """
    from optuna import pruners

    if name in ("none", "nop"):
        return pruners.NopPruner()
    if name in ("asha", "halving", "successive_halving"):
        return pruners.SuccessiveHalvingPruner(min_resource=marks[0], reduction_factor=4, min_early_stopping_rate=0)
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=marks[0], max_resource=marks[-1], reduction_factor=3)
    if name == "median":
        spared = len(marks) // 3
        return pruners.MedianPruner(n_startup_trials, n_warmup_steps=marks[spared - 1] if spared else 0)
    raise unknown("pruner", name, PRUNERS)


def evaluation_marks(n_timesteps: int, n_evaluations: int | None, pruner: str) -> tuple[int, ...]:
    """Spreads a trial's evaluations over its budget.

    Args:
        n_timesteps: The budget, in env steps.
        n_evaluations: How many; None for one each 100,000 env steps, and with `asha` at least 5.
        pruner: The pruner's name.

    Returns:
        Env steps from which on each evaluation is due, ascending; the last is the budget.

    Raises:
        ConfigError: Fewer than one evaluation.
    """
    if n_evaluations is None:
        n_evaluations = max(n_timesteps // STEPS_PER_EVALUATION, ASHA_EVALUATIONS if pruner == "asha" else 1)
    if n_evaluations < 1:
        raise ConfigError(f"n_evaluations must be at least 1, not {n_evaluations}")
    count = min(n_evaluations, n_timesteps)
    return tuple(n_timesteps * number // count for number in range(1, count + 1))
