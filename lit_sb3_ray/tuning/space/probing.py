"""Trials outside of any study, whose values a function gives: to find out what a space has, and where a point of it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.tuning.storage import open_study

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

Draw = Callable[[str, "BaseDistribution"], Any]
"""Gives the value of a parameter, by its name and its distribution."""


class CallingSampler(BaseSampler):
    """Asks a function for each value."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Finds nothing: each parameter is asked for by itself."""
        return {}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """Draws nothing."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Asks the function."""
        return self._draw(param_name, param_distribution)


def begin_probe(draw: Draw) -> Trial:
    """Begins a trial that belongs to no study.

    Args:
        draw: Gives the values of what is suggested.

    Returns:
        An `optuna.Trial`, so that a space of the user's may do with it what it does with any other.
    """
    study = open_study(None, None)
    study.sampler = CallingSampler(draw)
    return study.ask()


def lowest(name: str, distribution: BaseDistribution) -> Any:
    """Gives a parameter's lower bound or first choice."""
    return _corner(distribution, 0)


def highest(name: str, distribution: BaseDistribution) -> Any:
    """Gives a parameter's upper bound or last choice."""
    return _corner(distribution, -1)


def covering(turn: int) -> Draw:
    """Makes a draw of which the turns 0, 1, 2, ... together have every choice and both bounds of all parameters."""

    def draw(name: str, distribution: BaseDistribution) -> Any:
        if isinstance(distribution, CategoricalDistribution):
            return distribution.choices[turn % len(distribution.choices)]
        return _corner(distribution, -(turn % 2))

    return draw


def nearest(targets: Mapping[str, Any]) -> Draw:
    """Makes a draw that comes as near to given values as the distributions allow.

    Args:
        targets: The values by the names of the parameters. Where there is none, or one of another kind, it is the middle of
            a range or the first choice.
    """

    def draw(name: str, distribution: BaseDistribution) -> Any:
        target = targets.get(name)
        if isinstance(distribution, CategoricalDistribution):
            return _nearest_choice(target, distribution.choices, name in targets)
        return _nearest_number(to_number(target), distribution)

    return draw


def _corner(distribution: BaseDistribution, index: int) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[index]
    return _bounds(distribution)[index]


def _bounds(distribution: BaseDistribution) -> tuple[float, float]:
    if isinstance(distribution, IntDistribution | FloatDistribution):
        return distribution.low, distribution.high
    raise TypeError(f"a distribution of an unknown kind: {distribution}")


def _nearest_choice(target: Any, choices: Sequence[Any], given: bool) -> Any:
    same = [choice for choice in choices if choice == target and isinstance(choice, bool) == isinstance(target, bool)]
    if given and same:
        return same[0]
    number = to_number(target)
    numbers = [(value, choice) for choice in choices if (value := to_number(choice)) is not None]
    if number is None or not numbers:
        return choices[0]
    return min(numbers, key=lambda pair: abs(pair[0] - number))[1]


def _nearest_number(target: int | float | None, distribution: BaseDistribution) -> int | float:
    low, high = _bounds(distribution)
    if target is None or target != target:
        target = (low * high) ** 0.5 if getattr(distribution, "log", False) else (low + high) / 2
    number = min(max(target, low), high)
    if isinstance(distribution, IntDistribution):
        return distribution.low + round((number - low) / distribution.step) * distribution.step
    step = getattr(distribution, "step", None)
    # The sum may be a last bit above the bound.
    return float(number) if step is None else min(low + round((number - low) / step) * step, high)
