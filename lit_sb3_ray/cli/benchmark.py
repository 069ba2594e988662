"""`lit-sb3-ray benchmark`: plays every run under a folder, and puts what they come to in a table beside published figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from lit_sb3_ray.cli.benchmark_parser import build_parser
from lit_sb3_ray.cli.output import set_up_logging, spread
from lit_sb3_ray.cli.playing import check_seed
from lit_sb3_ray.cli.ray_flags import ray_settings

if TYPE_CHECKING:
    from lit_sb3_ray.benchmarking.benchmark import Benchmark, BenchmarkResult
    from lit_sb3_ray.benchmarking.table import Row


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `benchmark`.

    Returns:
        0; 1 when some runs could not be played; 128 + the signal's number when a signal ended it, what was played until then
        being kept.

    Raises:
        ConfigError: Bad input, or no runs.
    """
    args = build_parser().parse_args(list(argv))
    check_seed(args.seed)
    # The runs have their own output; of the library's log, what is a warning concerns this process.
    set_up_logging(0 if args.verbose < 2 else args.verbose)
    benchmark = build_benchmark(args)

    from lit_sb3_ray.benchmarking.benchmark import run_benchmark

    shown = args.verbose > 0 and sys.stderr.isatty()
    with tqdm(unit="run", file=sys.stderr, disable=not shown, leave=False) as bar:

        def tell(row: Row, done: int, total: int) -> None:
            bar.total = total
            bar.update()
            if args.verbose > 0:
                tqdm.write(row_line(row, done, total), file=sys.stdout)
                sys.stdout.flush()

        result = run_benchmark(benchmark, tell)
    return _report(result, args.verbose)


def build_benchmark(args: argparse.Namespace) -> Benchmark:
    """Settles what is asked for.

    Args:
        args: The parsed flags.

    Raises:
        ConfigError: A package cannot be imported, or the published figures cannot be read.
    """
    from lit_sb3_ray.benchmarking.benchmark import Benchmark
    from lit_sb3_ray.benchmarking.published import PACKAGED, read_published
    from lit_sb3_ray.benchmarking.scoring import Rules
    from lit_sb3_ray.envs.families import import_packages

    import_packages(args.gym_packages)
    figures = () if args.published == "none" else read_published(Path(args.published or PACKAGED))
    return Benchmark(
        log_dir=Path(args.log_dir),
        folder=Path(args.benchmark_dir),
        rules=Rules(args.n_timesteps, args.n_envs, args.seed, args.load_best),
        published=tuple(figures),
        algos=tuple(args.algo),
        env_ids=tuple(args.env),
        with_mujoco=args.with_mujoco,
        only_first=args.test_mode,
        num_threads=args.num_threads,
        n_jobs=args.n_jobs,
        gym_packages=tuple(args.gym_packages),
        trust=args.trust,
        ray_settings=ray_settings(args),
    )


def row_line(row: Row, done: int, total: int) -> str:
    """Writes one run that has been played.

    Args:
        row: Its row.
        done: How many are through, this one included.
        total: How many there are to play.
    """
    if row.score is None:
        return f"[{done}/{total}] {row.run}: not played: {row.problem}"
    score = row.score
    return f"[{done}/{total}] {row.run}: {spread(score.mean_reward, score.std_reward)} ({score.eval_episodes} episodes)"


def _report(result: BenchmarkResult, verbose: int) -> int:
    from lit_sb3_ray.benchmarking.benchmark import failed
    from lit_sb3_ray.benchmarking.table import markdown

    if verbose > 0:
        print(markdown(result.rows))
        print(f"Written to {result.markdown} and {result.table}", flush=True)
    if result.stop_signal is not None:
        print("Stopped; what is played is kept. Go on by the same command", file=sys.stderr)
        return 128 + result.stop_signal
    return 1 if failed(result.rows) else 0
