"""Running statistics of several learners made one, as if each had seen what all have."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.running_mean_std import RunningMeanStd

Statistics = Mapping[str, Any]
"""`obs_rms` and `ret_rms` of a `VecNormalize`, as `normalize_statistics` gives them; `obs_rms` is a dict for Dict spaces."""


class Merger:
    """Merges what learners have seen since they last had the same statistics.

    What a learner has seen is told as three sums: how much, and the first and second power of its distance from the mean that
    all had. They are added up over the learners, and give the statistics of all of it. The formula is the same in each, and so
    are the bits.
    """

    def __init__(self, statistics: Statistics) -> None:
        """Takes the statistics that all learners have.

        Args:
            statistics: They are copied.
        """
        self._common = copy.deepcopy(dict(statistics))

    def told(self, statistics: Statistics) -> np.ndarray:
        """What this learner has seen, as a flat array of sums.

        Args:
            statistics: The learner's own.
        """
        return np.concatenate([np.zeros(0), *(_sums(*pair) for pair in self._pairs(statistics))])

    def merge(self, statistics: Statistics, sums: np.ndarray) -> None:
        """Puts the statistics of all learners into a learner's own.

        Args:
            statistics: The learner's own, which are changed.
            sums: What `told` gave, added up over all learners.
        """
        start = 0
        for common, own in self._pairs(statistics):
            end = start + 1 + 2 * np.size(common.mean)
            _take(common, own, sums[start:end])
            start = end
        self._common = copy.deepcopy(dict(statistics))

    def _pairs(self, statistics: Statistics) -> Iterator[tuple[RunningMeanStd, RunningMeanStd]]:
        for name, common in self._common.items():
            if isinstance(common, dict):
                yield from ((common[key], statistics[name][key]) for key in common)
            else:
                yield common, statistics[name]


def _sums(common: RunningMeanStd, own: RunningMeanStd) -> np.ndarray:
    moved = own.mean - common.mean
    first = own.count * moved
    second = own.count * (own.var + np.square(moved)) - common.count * common.var
    return np.concatenate([[own.count - common.count], np.ravel(first), np.ravel(second)])


def _take(common: RunningMeanStd, own: RunningMeanStd, sums: np.ndarray) -> None:
    shape, size = np.shape(common.mean), np.size(common.mean)
    count = common.count + float(sums[0])
    moved = sums[1 : 1 + size].reshape(shape) / count
    second = common.count * common.var + sums[1 + size :].reshape(shape)
    own.mean, own.var, own.count = common.mean + moved, np.maximum(second / count - np.square(moved), 0.0), count
