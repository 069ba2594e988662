"""Scores of algorithms over environments, as matrices: what aggregate figures are made of."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.reference_scores import ScoreRange
from lit_sb3_ray.plots.results import Results

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]

EVERY = 4
"""Of the evaluations on the way, every so many-th is in `Scores.on_the_way`; the first and the last always are."""


@dataclass(frozen=True)
class Scores:
    """Scores by key; runs are cut to as many as there are in each environment of a key.

    Attributes:
        environments: The environments, in the order of the columns.
        last: Scores of the last evaluations by key, shape `(n_runs, n_environments)`.
        on_the_way: Scores of some evaluations by key, shape `(n_runs, n_environments, n_evaluations)`.
        positions: Where these evaluations lie, shape `(n_evaluations,)`.
        in_steps: Whether positions are env steps; else they are numbers of evaluations.
        normalized: Whether all scores go from 0 (a random agent) to 1 (an acceptable one).
        order: All keys of the results, those that were left out, too: what colours go by.
    """

    environments: tuple[str, ...]
    last: dict[str, Array]
    on_the_way: dict[str, Array]
    positions: Array
    in_steps: bool
    normalized: bool
    order: tuple[str, ...]

    @property
    def n_runs(self) -> int:
        """The fewest runs of a key."""
        return min(len(scores) for scores in self.last.values())


def score_matrices(results: Results, ranges: Mapping[str, ScoreRange]) -> Scores:
    """Makes matrices of results.

    Keys without a result in some environment, or with one that is not finite, are left out, and told by a warning; so are
    environments whose scores are not brought to one scale, if there are others.

    Args:
        results: The results.
        ranges: What counts as 0 and as 1, by environment.

    Raises:
        ConfigError: No key has results in all environments.
    """
    environments = [env for env, found in results.environments.items() if found]
    complete, problems = {}, []
    for key in results.keys:
        missing = [env for env in environments if key not in results.environments[env]]
        diverged = [env for env in environments if env not in missing and not results.environments[env][key].is_finite]
        if missing:
            problems.append(f"{key} has no result in {', '.join(missing)}")
        elif diverged:
            problems.append(f"{key} has results in {', '.join(diverged)} that are not finite")
        else:
            complete[key] = [results.environments[env][key] for env in environments]
    if not complete:
        raise ConfigError(
            f"aggregates need finite results in every environment, and no key has them: {problems[0]}; leave some out with "
            "--skip-envs"
        )
    for problem in problems:
        logger.warning("%s: left out of the aggregates", problem)
    raw = [env for env in environments if env not in ranges]
    if raw and len(environments) > 1:
        logger.warning(
            "there is no reference score of %s: scores of environments of different scales are aggregated as they are "
            "(--reference-scores)",
            ", ".join(raw),
        )
    scales = [ranges.get(env, ScoreRange(0.0, 1.0)) for env in environments]
    positions, chosen, in_steps = _positions([result for found in complete.values() for result in found])
    last, on_the_way = {}, {}
    for key, found in complete.items():
        n_runs = min(result.n_runs for result in found)
        scaled = [scale.normalize(result.mean_per_eval[:, :n_runs]) for scale, result in zip(scales, found, strict=True)]
        last[key] = np.stack([scores[-1] for scores in scaled], axis=-1)
        on_the_way[key] = np.stack([scores[chosen].T for scores in scaled], axis=1)
    return Scores(tuple(environments), last, on_the_way, positions, in_steps, not raw, tuple(results.keys))


def _positions(results: list[Result]) -> tuple[Array, NDArray[np.intp], bool]:
    """Which evaluations are looked at, where they lie, and whether that is in env steps."""
    shortest = min((result.timesteps for result in results), key=len)
    count = len(shortest)
    if any(len(result.timesteps) > count for result in results):
        logger.warning("sample efficiency is shown for the first %d evaluations, which all results have", count)
    chosen = np.unique(np.append(np.arange(0, count, EVERY), count - 1))
    in_steps = all(np.array_equal(result.timesteps[:count], shortest) for result in results)
    return (shortest[chosen] if in_steps else chosen + 1.0), chosen, in_steps
