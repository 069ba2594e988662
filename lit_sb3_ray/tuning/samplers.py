"""Samplers by name: what proposes the next trial's parameters."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

SAMPLERS = ("auto", "cmaes", "random", "tpe")

# CMA-ES learns slowly: with fewer trials TPE is ahead.
CMAES_FROM = 100


def build_sampler(name: str, seed: int, n_startup_trials: int) -> BaseSampler:
    """Builds a sampler.

    Args:
        name: `random`; `tpe`, which models the parameters together; `cmaes`, for numbers alone: it draws choices at random.
        seed: Seed of its draws.
        n_startup_trials: Trials drawn at random before it starts to learn.

    Raises:
        ConfigError: Unknown name.
    """
    from optuna.samplers import CmaEsSampler, RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    if name == "tpe":
        return TPESampler(n_startup_trials=n_startup_trials, seed=seed, multivariate=True)
    if name == "cmaes":
        return CmaEsSampler(n_startup_trials=max(n_startup_trials, 1), seed=seed, warn_independent_sampling=False)
    raise unknown("sampler", name, SAMPLERS)


def choose_sampler(name: str, numbers_only: bool, n_trials: int) -> str:
    """Settles `auto`: it is `cmaes` where every parameter is a number, trials are many and the package is there, else `tpe`.

    Args:
        name: The sampler asked for.
        numbers_only: Whether the space has no categorical parameters.
        n_trials: Trials to come.

    Returns:
        A name that `build_sampler` takes.

    Raises:
        ConfigError: Unknown name, or the sampler's package is not installed.
    """
    if name not in SAMPLERS:
        raise unknown("sampler", name, SAMPLERS)
    if name == "cmaes" and not _has_cmaes():
        raise ConfigError("sampler 'cmaes' needs the package cmaes: pip install 'lit-sb3-ray[samplers]'")
    if name != "auto":
        return name
    return "cmaes" if numbers_only and n_trials >= CMAES_FROM and _has_cmaes() else "tpe"


def _has_cmaes() -> bool:
    return importlib.util.find_spec("cmaes") is not None
