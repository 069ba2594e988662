"""Figures over few runs: mean, median and interquartile mean, and bootstrap intervals of these and of any other.

Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep Reinforcement Learning at the Edge of the Statistical Precipice",
NeurIPS 2021, propose the interquartile mean and stratified bootstrap intervals for results of few runs; `rliable` is their
code, and the figures here are computed as there. The median of a `Summary` is that of all values; rliable's is over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000
# Of two values the resamples are the values themselves and their mean: no interval comes of that.
FEWEST_VALUES = 3
# The part that the interquartile mean leaves out at each end.
TRIMMED = 0.25

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """Where a figure lies, at the confidence it was asked for.

    Attributes:
        low: Its lower end.
        high: Its upper end.
    """

    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """One figure over seeds.

    Attributes:
        value: The figure.
        interval: Its percentile bootstrap interval; None where there are fewer than `FEWEST_VALUES` values.
    """

    value: float
    interval: Interval | None

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.interval.low:.2f}, {self.interval.high:.2f}]"


@dataclass(frozen=True)
class Summary:
    """What several runs have come to.

    Attributes:
        count: How many values there are.
        mean: Their mean.
        median: Their median.
        iqm: Their interquartile mean.
        std: Their standard deviation (over `count - 1`); None for a single value.
    """

    count: int
    mean: Figure
    median: Figure
    iqm: Figure
    std: float | None

    def __str__(self) -> str:
        return f"mean {self.mean}, median {self.median}, IQM {self.iqm}"


def interquartile_mean(values: Array) -> Array:
    """Takes the mean of the middle half along the last axis.

    Args:
        values: Values; of `n` of them, `n // 4` are left out at each end, so that of fewer than four none is.

    Returns:
        The means, one axis less.
    """
    count = values.shape[-1]
    cut = int(TRIMMED * count)
    middle: Array = np.sort(values, axis=-1)[..., cut : count - cut].mean(axis=-1)
    return middle


def summarize(
    strata: Sequence[Sequence[float]], *, seed: int = 0, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> Summary:
    """Summarises values over seeds.

    Args:
        strata: The values in groups that are resampled each by itself, such as one group an environment. The returns of one
            algorithm in one environment are a single group.
        seed: Fixes the resampling: the same values give the same intervals.
        resamples: How often the values are drawn again.
        confidence: Part of the resamples that the intervals hold.

    Returns:
        The figures over all values.

    Raises:
        ValueError: There is no value, or one that is not finite.
    """
    groups = [np.asarray(group, dtype=np.float64) for group in strata if len(group)]
    if not groups:
        raise ValueError("there is nothing to summarise")
    values = np.concatenate(groups)
    if not np.isfinite(values).all():
        raise ValueError(f"only finite values can be summarised, not {values.tolist()}")
    drawn = _resample(groups, seed, resamples) if len(values) >= FEWEST_VALUES else None

    def figure(statistic: Callable[[Array], Array]) -> Figure:
        return Figure(float(statistic(values)), None if drawn is None else _interval(statistic(drawn), confidence))

    return Summary(
        count=len(values),
        mean=figure(_mean),
        median=figure(_median),
        iqm=figure(interquartile_mean),
        std=float(values.std(ddof=1)) if len(values) > 1 else None,
    )


def mean_figure(values: Sequence[float], *, seed: int = 0, resamples: int = 2_000) -> Figure:
    """Takes the mean of one group with its interval, as `summarize` does."""
    return summarize([values], seed=seed, resamples=resamples).mean


def bootstrap(
    statistic: Callable[..., Array | float],
    *samples: Array,
    confidence: float = CONFIDENCE,
    resamples: int = 2_000,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Finds the percentile interval of any figure of runs in several environments, each of which is resampled by itself.

    Args:
        statistic: Computes the figure, or an array of figures, from as many arrays as there are samples.
        *samples: Each of the shape `(n_runs, n_environments, ...)`; what follows belongs to a run and stays with it.
        confidence: Part of the resamples that the interval holds.
        resamples: How often the runs are drawn again.
        seed: Fixes the resampling: the same values give the same interval.

    Returns:
        The lower and the upper end, each of the figure's shape.
    """
    generator = np.random.default_rng(seed)
    drawn = np.array([statistic(*(_drawn_again(sample, generator) for sample in samples)) for _ in range(resamples)])
    low, high = _quantiles(drawn, confidence)
    return low, high


def _drawn_again(sample: Array, generator: np.random.Generator) -> Array:
    """Draws the runs of each environment again, with replacement."""
    n_runs, n_environments = sample.shape[:2]
    again: Array = sample[generator.integers(0, n_runs, (n_runs, n_environments)), np.arange(n_environments)]
    return again


def _resample(groups: Sequence[Array], seed: int, resamples: int) -> Array:
    """Draws each group again, with replacement; one row a resample."""
    generator = np.random.default_rng(seed)
    return np.concatenate([group[generator.integers(0, len(group), (resamples, len(group)))] for group in groups], axis=1)


def _interval(statistics: Array, confidence: float) -> Interval:
    low, high = _quantiles(statistics, confidence)
    return Interval(float(low), float(high))


def _quantiles(statistics: Array, confidence: float) -> Array:
    """The ends of the interval, along the first axis."""
    ends: Array = np.quantile(statistics, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return ends


def _mean(values: Array) -> Array:
    mean: Array = values.mean(axis=-1)
    return mean


def _median(values: Array) -> Array:
    median: Array = np.median(values, axis=-1)
    return median
