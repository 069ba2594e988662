"""A benchmark: which runs are played, what is known already, what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from lit_sb3_ray.benchmarking.published import Published, find_published
from lit_sb3_ray.benchmarking.results import read_score, result_file, write_score
from lit_sb3_ray.benchmarking.runs import Run, find_runs
from lit_sb3_ray.benchmarking.scoring import Rules
from lit_sb3_ray.benchmarking.table import Row, write_table
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment.run_folder import check_writable
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.scale.ray_settings import RaySettings

OUTPUT = "output"
NOT_YET = "not played yet"
FETCH = "played with --with-mujoco only"


@dataclass(frozen=True)
class Benchmark:
    """What is to be played.

    Attributes:
        log_dir: The folder of the runs.
        folder: Where the table goes, with the results that a later start goes on from.
        rules: How the runs are played.
        published: Figures to stand beside them.
        algos: Algorithms to play; empty for all.
        env_ids: Environments to play in; empty for all.
        with_mujoco: Play MuJoCo's Fetch tasks, too.
        only_first: Play one run, to try things out.
        num_threads: CPU threads of each run.
        n_jobs: How many runs at once, at most; None for as many as there are CPUs for.
        gym_packages: Modules to import first.
        trust: Read downloaded models as if they were one's own.
        ray_settings: Which Ray the runs are played on.
    """

    log_dir: Path
    folder: Path
    rules: Rules = field(default_factory=Rules)
    published: tuple[Published, ...] = ()
    algos: tuple[str, ...] = ()
    env_ids: tuple[str, ...] = ()
    with_mujoco: bool = False
    only_first: bool = False
    num_threads: int = 1
    n_jobs: int | None = None
    gym_packages: tuple[str, ...] = ()
    trust: bool = False
    ray_settings: RaySettings = field(default_factory=RaySettings)


@dataclass(frozen=True)
class BenchmarkResult:
    """What a benchmark has come to.

    Attributes:
        rows: A row a run, by algorithm, environment and number.
        markdown: The table as Markdown.
        table: The table as CSV.
        stop_signal: The signal that has ended it early, if one did.
    """

    rows: tuple[Row, ...]
    markdown: Path
    table: Path
    stop_signal: int | None = None


Observer = Callable[[Row, int, int], object]
"""Hears of each run that has been played: its row, how many are through, and how many there are to play."""


def run_benchmark(benchmark: Benchmark, observer: Observer | None = None) -> BenchmarkResult:
    """Plays all runs that have no result yet, several at once on Ray, and writes the table.

    Each result is written as soon as it is there. A run that cannot be played is a row with the reason, and is tried again by
    the next start. A signal ends it early: what is played by then is kept, and is in the table.

    Args:
        benchmark: What is to be played.
        observer: Hears of each run.

    Raises:
        ConfigError: There are no runs, or the folder cannot be written.
    """
    runs = _chosen(benchmark)
    check_writable(benchmark.folder, "--benchmark-dir")
    rows = {run: _known(benchmark, run) for run in runs}
    left = [run for run, row in rows.items() if row.problem == NOT_YET]
    stop_signal = None
    try:
        if left:
            # What cannot be written is known before hours of playing.
            _write(benchmark, rows)
            stop_signal = _play(benchmark, left, rows, observer)
    finally:
        markdown, table = _write(benchmark, rows)
    return BenchmarkResult(tuple(rows.values()), markdown, table, stop_signal)


def _write(benchmark: Benchmark, rows: dict[Run, Row]) -> tuple[Path, Path]:
    with refusing(f"--benchmark-dir {str(benchmark.folder)!r} cannot be written"):
        return write_table(benchmark.folder, tuple(rows.values()), benchmark.rules)


def _chosen(benchmark: Benchmark) -> list[Run]:
    runs = find_runs(benchmark.log_dir)
    for what, wanted, known in (
        ("algorithm", benchmark.algos, {run.algo for run in runs}),
        ("environment", benchmark.env_ids, {run.env_id for run in runs}),
    ):
        for name in wanted:
            if name not in known:
                raise unknown(what, name, known, f"runs in {benchmark.log_dir}")
    chosen = [run for run in runs if run.algo in (benchmark.algos or (run.algo,))]
    chosen = [run for run in chosen if run.env_id in (benchmark.env_ids or (run.env_id,))]
    if not chosen:
        raise ConfigError(f"no run in {str(benchmark.log_dir)!r} is of one of these algorithms in one of these environments")
    return chosen[:1] if benchmark.only_first else chosen


def _known(benchmark: Benchmark, run: Run) -> Row:
    """A run's row before anything is played."""
    published = find_published(benchmark.published, run.algo, run.env_id)
    score, problem = None, run.problem
    if problem is None:
        try:
            with refusing(f"{run.path} cannot be read"):
                score = read_score(result_file(benchmark.folder, run, benchmark.rules))
        except ConfigError as error:
            problem = str(error)
    if problem is None and score is None:
        problem = FETCH if run.env_id.startswith("Fetch") and not benchmark.with_mujoco else NOT_YET
    return Row(run, score, problem, published)


def _play(benchmark: Benchmark, runs: list[Run], rows: dict[Run, Row], observer: Observer | None) -> int | None:
    from lit_sb3_ray.benchmarking.dispatch import Dispatcher, Setting

    setting = Setting(
        log_dir=benchmark.log_dir,
        output=benchmark.folder / OUTPUT,
        num_threads=benchmark.num_threads,
        n_jobs=benchmark.n_jobs,
        gym_packages=benchmark.gym_packages,
        trust=benchmark.trust,
        ray_settings=benchmark.ray_settings,
    )
    # What is played may be trained on meanwhile: the result belongs to what lay there before.
    files = {run: result_file(benchmark.folder, run, benchmark.rules) for run in runs}
    dispatcher = Dispatcher(setting, benchmark.rules)
    with closing(dispatcher.play(runs)) as played:
        for done, (run, outcome) in enumerate(played, start=1):
            if outcome.score is not None:
                write_score(files[run], run, benchmark.rules, outcome.score)
            rows[run] = Row(run, outcome.score, outcome.problem, rows[run].published)
            if observer is not None:
                observer(rows[run], done, len(runs))
    return dispatcher.stop_signal


def failed(rows: Sequence[Row]) -> list[Row]:
    """The rows of runs that could not be played; those that were left out on purpose are not among them."""
    return [row for row in rows if row.score is None and row.problem not in (NOT_YET, FETCH)]
