"""Aggregates with bootstrap intervals, of the figures of rliable (the extra `plots`): the only module that knows it.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep Reinforcement Learning at the Edge of the Statistical Precipice",
NeurIPS 2021. Runs are drawn again within each environment; scores are matrices of runs x environments. Of rliable only the
figures are taken: what it resamples with is built on `arch`, which pandas 3 breaks, and draws from numpy's global generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.config.problems import require_package
from lit_sb3_ray.plots.curves import Curve, Estimate
from lit_sb3_ray.statistics import bootstrap, interquartile_mean

Array = NDArray[np.float64]

RESAMPLES = 2000
PAIR_RESAMPLES = 1000

METRICS = ("Median", "IQM", "Mean", "Optimality Gap")


def check_rliable() -> None:
    """Checks that aggregates can be computed.

    Raises:
        MissingPackageError: rliable is not installed.
    """
    require_package("rliable", "aggregating over environments")


def aggregate_metrics(scores: Mapping[str, Array], confidence: float, *, gap: bool = True) -> dict[str, dict[str, Estimate]]:
    """Computes median (of the environments' means), interquartile mean, mean and optimality gap.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments)`.
        confidence: Part of the resamples that intervals hold.
        gap: Whether the optimality gap, how far scores below 1 are from it, means anything for these scores.

    Returns:
        Estimate by key by metric.
    """
    from rliable import metrics

    functions: dict[str, Callable[[Array], float]] = {
        "Median": metrics.aggregate_median,
        "IQM": lambda matrix: float(interquartile_mean(matrix.ravel())),
        "Mean": metrics.aggregate_mean,
        "Optimality Gap": metrics.aggregate_optimality_gap,
    }
    names = METRICS if gap else METRICS[:-1]

    def all_of(matrix: Array) -> Array:
        return np.array([functions[name](matrix) for name in names])

    found: dict[str, dict[str, Estimate]] = {name: {} for name in names}
    for key, matrix in scores.items():
        ends = bootstrap(all_of, matrix, resamples=RESAMPLES, confidence=confidence)
        for name, *figures in zip(names, all_of(matrix), *ends, strict=True):
            found[name][key] = Estimate(*map(float, figures))
    return found


def performance_profiles(scores: Mapping[str, Array], thresholds: Array, confidence: float) -> list[Curve]:
    """Computes which part of runs scores above each of some thresholds.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments)`.
        thresholds: The thresholds, rising.
        confidence: Part of the resamples that bands hold.

    Returns:
        A curve with a band by key.
    """
    return _curves(scores, thresholds, lambda matrix: (matrix[..., None] > thresholds).mean(axis=(0, 1)), confidence)


def probabilities_of_improvement(scores: Mapping[str, Array], confidence: float) -> dict[str, Estimate]:
    """Computes, for each two keys, how probable it is that a run of the first is better than one of the second.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments)`, of two keys or more.
        confidence: Part of the resamples that intervals hold.

    Returns:
        Estimate by pair, written `first > second`.
    """
    from rliable.metrics import probability_of_improvement

    found = {}
    for first, second in combinations(scores, 2):
        pair = scores[first], scores[second]
        ends = bootstrap(probability_of_improvement, *pair, resamples=PAIR_RESAMPLES, confidence=confidence)
        found[f"{first} > {second}"] = Estimate(float(probability_of_improvement(*pair)), *map(float, ends))
    return found


def sample_efficiency(scores: Mapping[str, Array], positions: Array, confidence: float) -> list[Curve]:
    """Computes the interquartile mean at several evaluations.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments, n_evaluations)`.
        positions: Where the evaluations lie, shape `(n_evaluations,)`.
        confidence: Part of the resamples that bands hold.

    Returns:
        A curve with a band by key.
    """
    return _curves(scores, positions, lambda cube: interquartile_mean(cube.reshape(-1, cube.shape[-1]).T), confidence)


def _curves(scores: Mapping[str, Array], positions: Array, figure: Callable[[Array], Array], confidence: float) -> list[Curve]:
    return [
        Curve(key, positions, figure(values), *bootstrap(figure, values, resamples=RESAMPLES, confidence=confidence))
        for key, values in scores.items()
    ]
