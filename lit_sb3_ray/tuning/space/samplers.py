"""Samplers by name: what proposes the next trial's parameters."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from lit_sb3_ray.tuning.space.search_space import SearchSpace

SAMPLERS = ("auto", "cmaes", "gp", "grid", "random", "tpe")

NEEDED = {"cmaes": "cmaes", "gp": "scipy"}
"""The packages that samplers need beyond this project's own."""

# CMA-ES learns slowly: with fewer trials TPE is ahead.
CMAES_FROM = 100


def build_sampler(name: str, seed: int, n_startup_trials: int, space: SearchSpace | None = None) -> BaseSampler:
    """Builds a sampler.

    Args:
        name: `random`; `tpe`, which models the parameters together; `cmaes`, for numbers, beside which TPE draws the choices;
            `gp`, a Gaussian process, for few and costly trials; `grid`, every point of a finite space once.
        seed: Seed of its draws; see `worker_seed`.
        n_startup_trials: Trials drawn at random before it starts to learn; CMA-ES and the Gaussian process need one.
        space: The space, which `grid` needs.

    Raises:
        ConfigError: Unknown name, the sampler's package is not installed, or the space is not finite.
    """
    from optuna.samplers import CmaEsSampler, GPSampler, RandomSampler, TPESampler

    if name not in SAMPLERS or name == "auto":
        raise unknown("sampler", name, set(SAMPLERS) - {"auto"})
    _check_package(name)
    if name == "random":
        return RandomSampler(seed=seed)
    if name == "grid":
        from lit_sb3_ray.tuning.space.grid import GridSampler, grid_of

        return GridSampler(grid_of(space), seed)
    # Trials at work count as poor ones, so that trials drawn at the same time keep apart.
    tpe = TPESampler(n_startup_trials=n_startup_trials, seed=seed, multivariate=True, constant_liar=True)
    if name == "tpe":
        return tpe
    warm_up = max(n_startup_trials, 1)
    if name == "cmaes":
        return CmaEsSampler(n_startup_trials=warm_up, seed=seed, independent_sampler=tpe, warn_independent_sampling=False)
    return GPSampler(n_startup_trials=warm_up, seed=seed, independent_sampler=tpe, warn_independent_sampling=False)


def choose_sampler(name: str, numbers_only: bool, n_trials: int, space: SearchSpace | None = None) -> str:
    """Settles `auto`, and refuses early what cannot be built.

    `auto` is `grid` where the space has no more points than there are trials: then all can be tried; `cmaes` where every
    parameter is a number, trials are at least `CMAES_FROM`, and its package is there; else `tpe`.

    Args:
        name: The sampler asked for.
        numbers_only: Whether the space has no categorical parameters.
        n_trials: Trials to come.
        space: The space; without it, `auto` is never `grid`.

    Returns:
        A name that `build_sampler` takes.

    Raises:
        ConfigError: Unknown name, the sampler's package is not installed, or the space is not finite.
    """
    if name not in SAMPLERS:
        raise unknown("sampler", name, SAMPLERS)
    if name != "auto":
        _check_package(name)
        if name == "grid":
            from lit_sb3_ray.tuning.space.grid import grid_of

            grid_of(space)
        return name
    if space is not None and _points(space) <= n_trials:
        return "grid"
    return "cmaes" if numbers_only and n_trials >= CMAES_FROM and _is_installed("cmaes") else "tpe"


def worker_seed(seed: int, driver_number: int, n_known_trials: int) -> int:
    """Derives the seed of one driver's sampler, so that drivers with one seed never draw the same points.

    Args:
        seed: The study's seed, from 0 up.
        driver_number: How many drivers have worked on the study before, or beside, this one.
        n_known_trials: Trials that the study has already.

    Returns:
        A whole number below 2**32, the same on every machine.
    """
    import numpy as np

    return int(np.random.SeedSequence([seed, driver_number, n_known_trials]).generate_state(1)[0])


def _points(space: SearchSpace) -> float:
    from lit_sb3_ray.tuning.space.grid import grid_of

    try:
        return grid_of(space).size
    except ConfigError:  # It is not finite.
        return float("inf")


def _check_package(name: str) -> None:
    package = NEEDED.get(name)
    if package is not None and not _is_installed(package):
        raise ConfigError(f"sampler {name!r} needs the package {package}: pip install 'lit-sb3-ray[samplers]'")


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
