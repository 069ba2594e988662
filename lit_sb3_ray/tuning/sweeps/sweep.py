"""Sweeps: every combination of algorithms, environments and seeds, trained side by side and compared."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lit_sb3_ray.config.ranges import MAX_SEED
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.run_folder import check_writable, write_yaml
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.forecast import coming_nodes
from lit_sb3_ray.scale.nodes import node_resources
from lit_sb3_ray.scale.ray_settings import RaySettings
from lit_sb3_ray.scale.shared_storage import check_shared
from lit_sb3_ray.tuning.sweeps.combination import Combination, read_result
from lit_sb3_ray.tuning.sweeps.dispatch import Dispatcher, Job, Observer
from lit_sb3_ray.tuning.sweeps.needs import find_need
from lit_sb3_ray.tuning.sweeps.preflight import check_folders, probe
from lit_sb3_ray.tuning.sweeps.sweep_record import RECORD, begin, extend, recorded, take
from lit_sb3_ray.tuning.sweeps.sweep_report import Line, Row, find_lines, find_rows, write_reports

# Without a number of their own, runs take so many checkpoints on the way.
CHECKPOINTS = 10


@dataclass(frozen=True)
class Sweep:
    """What is to be trained, and how.

    Attributes:
        folder: The sweep's folder: run folders, output, reports, and all that a later start must know.
        algos: Algorithms.
        envs: Environments.
        seeds: Seeds.
        settings: Arguments of `ExperimentManager` by name, for all runs; `algo`, `env_id`, `seed` and `log_folder` are set for
            each, and without `save_freq` a run takes ten checkpoints.
        cpus_per_run: CPUs of a run; None for one, and more with env actors.
        gpus_per_run: 1 for a GPU of its own for each run, or a part of one.
        n_jobs: Runs at once, at most; None for as many as fit.
        max_failures: How often a run whose process is lost is started again.
        ray_settings: Which Ray to work with, and what is shipped to it.
    """

    folder: Path
    algos: tuple[str, ...]
    envs: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    cpus_per_run: float | None = None
    gpus_per_run: float = 0.0
    n_jobs: int | None = None
    max_failures: int = 3
    ray_settings: RaySettings = field(default_factory=RaySettings)


@dataclass(frozen=True)
class SweepResult:
    """What a sweep has come to.

    Attributes:
        folder: Where all of it lies.
        rows: One a run.
        lines: One an algorithm and environment.
        notes: What else is to be told.
        stop_signal: The signal that has ended it, if one did.
    """

    folder: Path
    rows: tuple[Row, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    stop_signal: int | None = None

    @property
    def failed(self) -> tuple[Row, ...]:
        """The runs that have failed."""
        return tuple(row for row in self.rows if row.state == "failed")


def run_sweep(sweep: Sweep, *, resume: bool = False, observer: Observer | None = None) -> SweepResult:
    """Trains every combination and writes the reports.

    A run that fails does not end the sweep. Finished runs are not run again, and unfinished ones go on from their last
    checkpoint.

    Args:
        sweep: What is to be trained.
        resume: Go on with the sweep that lies in the folder, if one does; more algorithms, environments and seeds may be asked
            for than before.
        observer: Hears of what happens.

    Returns:
        Where each run stands, and the figures over seeds.

    Raises:
        BadCombinationsError: Some combinations cannot be trained; nothing has been written then.
        ConfigError: Wrong settings, a sweep that is there already, or is being worked on.
    """
    _check(sweep)
    pairs = list(dict.fromkeys(itertools.product(sweep.algos, sweep.envs)))
    with ExitStack() as stack:
        known = take(sweep.folder, resume, stack)
        numbers = _numbers(known, sweep)
        asked = [Combination(*pair, seed, numbers[seed]) for pair in pairs for seed in dict.fromkeys(sweep.seeds)]
        left = [each for each in asked if read_result(each.run(sweep.folder)) is None]
        settings = _settings(sweep)
        record = extend(known, sweep, settings, numbers)
        check_folders(itertools.product(record["algos"], record["envs"]))
        jobs = _jobs(sweep, left, settings) if left else []
        dispatcher = Dispatcher(sweep.folder, jobs, n_jobs=sweep.n_jobs, max_failures=sweep.max_failures, observer=observer)
        if known is None:
            begin(sweep.folder, stack)
        write_yaml(sweep.folder / RECORD, record)
        dispatcher.run()
        rows = find_rows(sweep.folder, recorded(sweep.folder, record, asked), dispatcher.outcomes)
        lines = find_lines(rows)
        notes = write_reports(sweep.folder, rows, lines)
    return SweepResult(sweep.folder, tuple(rows), tuple(lines), tuple(notes), dispatcher.stop_signal)


def _check(sweep: Sweep) -> None:
    if not (sweep.algos and sweep.envs and sweep.seeds):
        raise ConfigError("a sweep needs at least one algorithm, one environment and one seed")
    for seed in sweep.seeds:
        if not 0 <= seed <= MAX_SEED:
            raise ConfigError(f"seed {seed} is not between 0 and {MAX_SEED}")
    if sweep.n_jobs is not None and sweep.n_jobs < 1:
        raise ConfigError(f"n_jobs must be at least 1, not {sweep.n_jobs}")
    if sweep.cpus_per_run is not None and sweep.cpus_per_run <= 0:
        raise ConfigError(f"a run needs some CPUs, not {sweep.cpus_per_run:g}")
    if sweep.gpus_per_run > 1:
        raise ConfigError(f"--gpus-per-run {sweep.gpus_per_run:g}: a run trains on one GPU; give 1, or a part of one")
    if sweep.gpus_per_run < 0 or sweep.max_failures < 0:
        raise ConfigError("GPUs of a run and the number of failures cannot be negative")
    check_writable(sweep.folder, "--log-folder")
    sweep.ray_settings.make_importable()


def _settings(sweep: Sweep) -> dict[str, Any]:
    """The settings that all runs share."""
    settings = {**sweep.settings, "log_folder": str(sweep.folder.absolute())}
    if settings.get("vec_env_type", "auto") == "auto":
        # Runs side by side need the CPUs, and each gets what was counted beforehand. Only an actor can be left behind.
        settings["vec_env_type"] = "dummy" if settings.get("env_timeout") is None else "ray"
    own = {"algo", "env_id", "seed", *(["save_freq"] if settings.get("save_freq") is None else [])}
    return {name: value for name, value in settings.items() if name not in own}


def _numbers(known: dict[str, Any] | None, sweep: Sweep) -> dict[int, int]:
    """The number of each seed's run folders."""
    earlier = [] if known is None else known["seeds"]
    return {seed: number for number, seed in enumerate(dict.fromkeys([*earlier, *sweep.seeds]), start=1)}


def _jobs(sweep: Sweep, left: Sequence[Combination], settings: Mapping[str, Any]) -> list[Job]:
    """Checks what is left to do, and settles what each run of it is given."""
    pairs = dict.fromkeys((each.algo, each.env_id) for each in left)
    extents = probe(pairs, settings, gpus=sweep.gpus_per_run)
    coming = coming_nodes(sweep.ray_settings)
    if coming is not None:
        for pair in pairs:
            find_need(sweep.cpus_per_run, sweep.gpus_per_run, extents[pair].env_actors, settings.get("env_cpus"), coming)
    connect(sweep.ray_settings)
    check_shared(str(sweep.folder.parent), "--log-folder")
    nodes, jobs = node_resources(), []
    for each in left:
        extent = extents[each.algo, each.env_id]
        own = {**settings, "algo": each.algo, "env_id": each.env_id, "seed": each.seed}
        own.setdefault("save_freq", max(1, extent.n_timesteps // CHECKPOINTS))
        need = find_need(sweep.cpus_per_run, sweep.gpus_per_run, extent.env_actors, own.get("env_cpus"), nodes)
        jobs.append(Job(each, own, need))
    return jobs
