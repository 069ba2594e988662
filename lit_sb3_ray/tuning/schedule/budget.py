"""A trial's budget: the env steps at which it is evaluated, the same for every trial of a study."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from lit_sb3_ray.errors import ConfigError

STEPS_PER_EVALUATION = 100_000
LEAST_EVALUATIONS = 5
# What compares trials at rungs cannot end any in a short study that evaluates once. The others keep rl_zoo3's number.
COMPARES_AT_RUNGS = frozenset({"asha", "halving", "hyperband", "pbt", "successive_halving"})


def evaluation_marks(n_timesteps: int, n_evaluations: int | None, scheduler: str) -> tuple[int, ...]:
    """Spreads a trial's evaluations over its budget.

    Args:
        n_timesteps: The budget, in env steps.
        n_evaluations: How many, of which no two share an env step; None for one each 100,000 env steps, and for at least 5
            with a scheduler that has rungs.
        scheduler: The scheduler's name.

    Returns:
        Env steps from which on each evaluation is due, ascending; the last is the budget.

    Raises:
        ConfigError: Fewer than one evaluation, or no budget.
    """
    if n_timesteps < 1:
        raise ConfigError(f"n_timesteps must be at least 1, not {n_timesteps}")
    if n_evaluations is None:
        n_evaluations = max(n_timesteps // STEPS_PER_EVALUATION, LEAST_EVALUATIONS if scheduler in COMPARES_AT_RUNGS else 1)
    if n_evaluations < 1:
        raise ConfigError(f"n_evaluations must be at least 1, not {n_evaluations}")
    count = min(n_evaluations, n_timesteps)
    return tuple(n_timesteps * number // count for number in range(1, count + 1))


def mark_reached(marks: Sequence[int], num_timesteps: int) -> int:
    """Finds the last mark that a number of env steps has reached; 0 before the first."""
    passed = bisect_right(marks, num_timesteps)
    return marks[passed - 1] if passed else 0
