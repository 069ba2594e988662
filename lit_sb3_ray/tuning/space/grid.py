"""Every point of a finite space once, whoever works on the study."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.rows import WARM_START
from lit_sb3_ray.tuning.space.probing import begin_probe, lowest

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from lit_sb3_ray.tuning.space.search_space import SearchSpace

logger = logging.getLogger(__name__)

# A driver writes down what it has drawn within milliseconds; one that has not for so long was killed in between.
WAIT_S = 5.0
POLL_S = 0.01
TRIES = 10_000
FIXED = "fixed_params"
"""Optuna's own attribute of a trial that was enqueued."""


@dataclass(frozen=True)
class Grid:
    """The points of a finite space, by numbers: it may be too large to be written down.

    Attributes:
        distributions: By parameter; each has finitely many values.
    """

    distributions: dict[str, BaseDistribution]

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(count_of(distribution) or 0 for distribution in self.distributions.values())

    def point(self, index: int) -> dict[str, Any]:
        """Gives a point by its number, from 0 to below `size`."""
        params: dict[str, Any] = {}
        for name, distribution in self.distributions.items():
            index, position = divmod(index, count_of(distribution) or 1)
            params[name] = _value_at(distribution, position)
        return params

    def index(self, params: Mapping[str, Any]) -> int | None:
        """Finds the number of a point; None for what is no point of the grid, or not all of one."""
        index, factor = 0, 1
        for name, distribution in self.distributions.items():
            position = _position_of(distribution, params[name]) if name in params else None
            if position is None:
                return None
            index += position * factor
            factor *= count_of(distribution) or 1
        return index


def count_of(distribution: BaseDistribution) -> int | None:
    """Counts the values of a distribution; None when there is no end of them."""
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step + 1
    if not isinstance(distribution, FloatDistribution):
        return None
    if distribution.step is None:
        return 1 if distribution.single() else None
    return round((distribution.high - distribution.low) / distribution.step) + 1


def grid_of(space: SearchSpace | None) -> Grid:
    """Makes the grid of a space.

    Raises:
        ConfigError: The space has a parameter without end, or is not known before it is drawn from.
    """
    if space is None:
        raise ConfigError("sampler 'grid' needs a search space")
    distributions = space.distributions()
    known: Mapping[str, BaseDistribution]
    if distributions is None:
        probe = begin_probe(lowest)
        space.sample(probe)
        known = probe.distributions
    else:
        known = distributions
    for name, distribution in known.items():
        if count_of(distribution) is None:
            raise ConfigError(
                f"sampler 'grid' needs a finite space: {name!r} ({space.label}) is any number of a range; "
                "give it a step or choices in a file for --search-space"
            )
    if distributions is None:
        raise ConfigError(
            f"sampler 'grid' needs a space that is known beforehand: that of {space.label} depends on what is drawn; "
            "write it as a file for --search-space"
        )
    return Grid(distributions)


class GridSampler(BaseSampler):
    """Takes the points in random order.

    A point is taken by the row that has drawn it, whatever became of the row: what was broken off is gone on with under the
    same parameters. Rows take their points in the order of their numbers, over all drivers: a driver waits for those before
    it, so that no point is taken twice. A row that was begun with the file's own hyperparameters takes none.
    """

    def __init__(self, grid: Grid, seed: int) -> None:
        """Prepares a sampler.

        Args:
            grid: The points.
            seed: Seed of their order.
        """
        self.grid = grid
        self._order = random.Random(seed)
        self._independent = RandomSampler(seed=seed)
        self._given_up: set[int] = set()

    def remaining(self, study: Study) -> int:
        """Counts the points that no row has taken yet."""
        return self.grid.size - len(self._taken(study.get_trials(deepcopy=False)))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Gives the whole space."""
        return self.grid.distributions

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """Takes a point that is free, and agrees with what the trial was enqueued with."""
        fixed = trial.system_attrs.get(FIXED, {})
        if fixed.keys() >= self.grid.distributions.keys():
            return dict(fixed)
        taken = self._taken(self._rows_before(study, trial.number))
        index = self._free(taken, fixed)
        if index is None:
            logger.warning("Trial %d repeats a point of the grid: all %d are taken", trial.number, self.grid.size)
            index = self._free(set(), fixed)
        return {} if index is None else self.grid.point(index)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draws what is not of the grid at random."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def _rows_before(self, study: Study, number: int) -> list[FrozenTrial]:
        """All other rows, once those before this one have written down what they have drawn."""
        until = time.monotonic() + WAIT_S
        while True:
            rows = [row for row in study.get_trials(deepcopy=False) if row.number != number]
            late = {row.number for row in rows if row.number < number and self._is_drawing(row)} - self._given_up
            if not late:
                return rows
            if time.monotonic() > until:
                self._given_up |= late
                return rows
            time.sleep(POLL_S)

    def _is_drawing(self, row: FrozenTrial) -> bool:
        return row.state == TrialState.RUNNING and not self.grid.distributions.keys() <= _params(row).keys()

    def _taken(self, rows: Sequence[FrozenTrial]) -> set[int]:
        points = {self.grid.index(_params(row)) for row in rows if WARM_START not in row.user_attrs}
        return {index for index in points if index is not None}

    def _free(self, taken: set[int], fixed: Mapping[str, Any]) -> int | None:
        size = self.grid.size
        if not fixed and len(taken) * 2 >= size:
            free = [index for index in range(size) if index not in taken]
            return self._order.choice(free) if free else None
        for _ in range(TRIES):  # The grid may be too large to be written down.
            index = self.grid.index({**self.grid.point(self._order.randrange(size)), **fixed})
            if index is not None and index not in taken:
                return index
        return None


def _params(row: FrozenTrial) -> dict[str, Any]:
    return {**row.system_attrs.get(FIXED, {}), **row.params}


def _value_at(distribution: BaseDistribution, position: int) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[position]
    if isinstance(distribution, IntDistribution | FloatDistribution):
        # The sum may be a last bit above the bound, and Optuna would draw another value then.
        return min(distribution.low + position * (distribution.step or 0), distribution.high)
    raise TypeError(f"a distribution of an unknown kind: {distribution}")


def _position_of(distribution: BaseDistribution, value: Any) -> int | None:
    """The place of a value among those of a distribution, None if it is none of them."""
    if isinstance(distribution, CategoricalDistribution):
        return next((place for place, choice in enumerate(distribution.choices) if _same(choice, value)), None)
    if not isinstance(distribution, IntDistribution | FloatDistribution) or not isinstance(value, int | float):
        return None
    place = round((value - distribution.low) / (distribution.step or 1))
    is_there = 0 <= place < (count_of(distribution) or 0)
    near = math.isclose(_value_at(distribution, place), value, rel_tol=1e-9, abs_tol=1e-12)
    return place if is_there and near else None


def _same(choice: Any, value: Any) -> bool:
    return bool(choice == value) and isinstance(choice, bool) == isinstance(value, bool)
