"""What a trial is worth: one number out of its evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from lit_sb3_ray.errors import ConfigError

OBJECTIVES = ("last", "best", "mean:K")


def check_objective(objective: str, evaluations: int | None = None) -> str:
    """Checks the name of an objective.

    Args:
        objective: `last`, `best`, or `mean:K` for the mean of the last K evaluations.
        evaluations: How many evaluations a trial has; None where that is not known yet.

    Returns:
        It.

    Raises:
        ConfigError: It is none, or takes more evaluations than there are.
    """
    kind, _, number = objective.partition(":")
    if objective in ("last", "best"):
        return objective
    if kind == "mean" and number.isdecimal() and int(number) > 0:
        if evaluations is not None and int(number) > evaluations:
            raise ConfigError(
                f"--objective {objective}: a trial has {evaluations} evaluation{'s' * (evaluations > 1)} (--n-evaluations)"
            )
        return objective
    raise ConfigError(f"--objective {objective!r} is none of {', '.join(OBJECTIVES)} (K at least 1)")


def objective_value(objective: str, values: Mapping[int, float]) -> float:
    """Computes a trial's value.

    Args:
        objective: See `check_objective`.
        values: Mean returns of its evaluations by env steps; at least one.
    """
    ordered = [values[step] for step in sorted(values)]
    if objective == "best":
        return max(ordered)
    if objective == "last":
        return ordered[-1]
    return fmean(ordered[-int(objective.partition(":")[2]) :])
