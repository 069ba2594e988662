"""Training what a study has found again, with seeds that it was not found with."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.statistics import Summary, summarize
from lit_sb3_ray.tuning.sweeps.dispatch import Observer
from lit_sb3_ray.tuning.sweeps.sweep import Sweep, SweepResult, run_sweep


@dataclass(frozen=True)
class Retrained:
    """What training again with other seeds has come to.

    Attributes:
        seeds: The seeds whose runs are finished.
        values: Their final mean returns.
        summary: Figures over them; None when none is finished.
        result: All of the runs.
    """

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    summary: Summary | None
    result: SweepResult


def retrain(
    settings: Mapping[str, Any],
    k: int,
    seed: int,
    *,
    folder: str | Path | None = None,
    cpus_per_run: float | None = None,
    gpus_per_run: float = 0.0,
    n_jobs: int | None = None,
    max_failures: int = 3,
    observer: Observer | None = None,
) -> Retrained:
    """Trains given hyperparameters with fresh seeds. Called again, it goes on where it was stopped.

    Args:
        settings: Arguments of `ExperimentManager` by name, `algo`, `env_id` and `log_folder` among them.
        k: How many seeds.
        seed: The seed that the hyperparameters were found with; none of the fresh ones is it.
        folder: Where runs and reports go; None for `retrained` in the log folder.
        cpus_per_run: See `Sweep`, as what follows.
        gpus_per_run: GPUs of a run.
        n_jobs: Runs at once.
        max_failures: How often a lost run is started again.
        observer: Hears of what happens.

    Returns:
        The final returns and the figures over them.

    Raises:
        ConfigError: Wrong settings.
    """
    home = Path(settings["log_folder"]) / "retrained" if folder is None else Path(folder)
    seeds = fresh_seeds(seed, k)
    needs = {"cpus_per_run": cpus_per_run, "gpus_per_run": gpus_per_run, "n_jobs": n_jobs, "max_failures": max_failures}
    sweep = Sweep(home, (settings["algo"],), (settings["env_id"],), seeds, settings, **needs)  # type: ignore[arg-type]
    result = run_sweep(sweep, resume=True, observer=observer)
    done = {row.combination.seed: row.result.mean_reward for row in result.rows if row.result is not None}
    kept = tuple(each for each in seeds if each in done)
    values = tuple(done[each] for each in kept)
    return Retrained(kept, values, summarize([values]) if values else None, result)


def fresh_seeds(seed: int, k: int) -> tuple[int, ...]:
    """Draws seeds that have nothing to do with one another, nor with that of a study.

    Args:
        seed: The study's seed; the same seed gives the same fresh ones, and a larger `k` the same and more.
        k: How many.

    Raises:
        ConfigError: `k` is below 1.
    """
    if k < 1:
        raise ConfigError(f"at least one seed is needed to train again, not {k}")
    found: dict[int, None] = {}
    for child in (np.random.SeedSequence([seed, 0x5EED, index]) for index in itertools.count()):
        drawn = int(child.generate_state(1)[0] // 2)
        if drawn != seed:
            found[drawn] = None
        if len(found) == k:
            return tuple(found)
    raise AssertionError("seeds do not run out")
