"""Aggregates with bootstrap intervals, computed by rliable (the extra `plots`): the only module that knows it.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep Reinforcement Learning at the Edge of the Statistical Precipice",
NeurIPS 2021. Runs are drawn again within each environment; scores are matrices of runs x environments.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.config.problems import missing_package
from lit_sb3_ray.plots.curves import Curve, Estimate

Array = NDArray[np.float64]

RESAMPLES = 2000
PAIR_RESAMPLES = 1000
SEED = 0

METRICS = ("Median", "IQM", "Mean", "Optimality Gap")


def check_rliable() -> None:
    """Checks that aggregates can be computed.

    Raises:
        MissingPackageError: rliable is not installed.
    """
    if importlib.util.find_spec("rliable") is None:
        raise missing_package("rliable", "aggregating over environments")


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

    functions = dict(
        zip(
            METRICS,
            (
                metrics.aggregate_median,
                metrics.aggregate_iqm,
                metrics.aggregate_mean,
                metrics.aggregate_optimality_gap,
            ),
            strict=True,
        )
    )
    names = METRICS if gap else METRICS[:-1]
    values, intervals = _estimate(
        scores, lambda matrix: np.array([functions[name](matrix) for name in names]), RESAMPLES, confidence
    )
    return {
        name: {key: Estimate(float(values[key][at]), *map(float, intervals[key][:, at])) for key in scores}
        for at, name in enumerate(names)
    }


def performance_profiles(scores: Mapping[str, Array], thresholds: Array, confidence: float) -> list[Curve]:
    """Computes which part of runs scores above each of some thresholds.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments)`.
        thresholds: The thresholds, rising.
        confidence: Part of the resamples that bands hold.

    Returns:
        A curve with a band by key.
    """
    library = _library()
    with _fixed_seed():
        # rliable's own function of the scores is this one, slowly.
        values, intervals = library.create_performance_profile(
            dict(scores),
            thresholds,
            custom_profile_func=_profile,
            reps=RESAMPLES,
            confidence_interval_size=confidence,
        )
    return [Curve(key, thresholds, values[key], intervals[key][0], intervals[key][1]) for key in scores]


def probabilities_of_improvement(scores: Mapping[str, Array], confidence: float) -> dict[str, Estimate]:
    """Computes, for each two keys, how probable it is that a run of the first is better than one of the second.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments)`, of two keys or more.
        confidence: Part of the resamples that intervals hold.

    Returns:
        Estimate by pair, written `first > second`.
    """
    from rliable import metrics

    pairs = {f"{first} > {second}": (scores[first], scores[second]) for first, second in combinations(scores, 2)}
    values, intervals = _estimate(pairs, metrics.probability_of_improvement, PAIR_RESAMPLES, confidence)
    return {pair: Estimate(float(values[pair]), *map(float, np.ravel(intervals[pair]))) for pair in pairs}


def sample_efficiency(scores: Mapping[str, Array], positions: Array, confidence: float) -> list[Curve]:
    """Computes the interquartile mean at several evaluations.

    Args:
        scores: Scores by key, shape `(n_runs, n_environments, n_evaluations)`.
        positions: Where the evaluations lie, shape `(n_evaluations,)`.
        confidence: Part of the resamples that bands hold.

    Returns:
        A curve with a band by key.
    """
    from rliable import metrics

    def iqm(cube: Array) -> Array:
        return np.array([metrics.aggregate_iqm(cube[..., at]) for at in range(cube.shape[-1])])

    values, intervals = _estimate(scores, iqm, RESAMPLES, confidence)
    return [Curve(key, positions, values[key], intervals[key][0], intervals[key][1]) for key in scores]


def _estimate(
    scores: Mapping[str, Array | Sequence[Array]], function: Callable[..., Any], reps: int, confidence: float
) -> tuple[Any, Any]:
    library = _library()
    with _fixed_seed():
        estimates: tuple[Any, Any] = library.get_interval_estimates(
            dict(scores), function, reps=reps, confidence_interval_size=confidence
        )
    return estimates


def _library() -> Any:
    """Imports what rliable resamples with, which is built on a part of `arch`.

    All of `arch` up to 7.2 cannot be imported beside pandas 3, because of its volatility models; that part can.
    """
    with contextlib.suppress(ImportError, TypeError):
        return importlib.import_module("rliable.library")
    spec = importlib.util.find_spec("arch")
    if spec is None:
        raise missing_package("arch", "aggregating over environments")
    # The package without what its __init__ imports: just where its modules are.
    sys.modules["arch"] = importlib.util.module_from_spec(spec)
    try:
        return importlib.import_module("rliable.library")
    finally:
        # Whoever imports it later shall get the whole, or its error.
        del sys.modules["arch"]


def _profile(scores: Array, thresholds: Array) -> Array:
    part: Array = (scores[..., None] > thresholds).mean(axis=(0, 1))
    return part


@contextlib.contextmanager
def _fixed_seed() -> Iterator[None]:
    """Gives the same intervals each time: rliable draws from numpy's global generator, whatever state it is handed."""
    before = np.random.get_state()
    np.random.seed(SEED)
    try:
        yield
    finally:
        np.random.set_state(before)
