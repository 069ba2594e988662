"""`lit-sb3-ray sweep`: every combination of algorithms, environments and seeds, trained side by side and compared."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.cli.flags import ParsedFlags, parse_flags
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.ray_flags import ray_settings
from lit_sb3_ray.cli.sweep_parser import OWN_DEFAULTS, build_parser, sweep_arguments
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import RAY_DEFAULTS

if TYPE_CHECKING:
    from lit_sb3_ray.tuning.sweeps.dispatch import Observer, Progress
    from lit_sb3_ray.tuning.sweeps.sweep import Sweep, SweepResult

PARAMETERS = {"conf_file": "config", "eval_episodes": "n_eval_episodes", "logger": "loggers", "vec_env": "vec_env_type"}
"""Flags whose settings `ExperimentManager` has under another name."""

FILES = (".yml", ".yaml", ".py")
LONGEST_NAME = 80


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `sweep`.

    Returns:
        0; 1 when some runs have failed; 2 when some combinations cannot be trained; 128 + the signal's number when a signal
        stopped the sweep, what was trained being saved then too.

    Raises:
        ConfigError: Other bad input; found before anything starts.
    """
    flags = parse_flags(build_parser(), argv, sweep_arguments())
    args = flags.values
    sweep, resume = build_sweep(flags)
    # The runs have their own output; of the library's log, what is a warning concerns this process.
    set_up_logging(0 if args.verbose < 2 else args.verbose)
    from lit_sb3_ray.tuning.sweeps.preflight import BadCombinationsError
    from lit_sb3_ray.tuning.sweeps.sweep import run_sweep

    try:
        result = run_sweep(sweep, resume=resume, observer=_observer(args.verbose))
    except BadCombinationsError as error:
        for problem in error.problems:
            print(f"lit-sb3-ray: error: {' '.join(problem.split())}", file=sys.stderr)
        return 2
    return _report(result, flags)


def build_sweep(flags: ParsedFlags) -> tuple[Sweep, bool]:
    """Settles what is asked for.

    Args:
        flags: The parsed command line.

    Returns:
        The sweep, and whether to go on with one that is there.

    Raises:
        ConfigError: Flags that contradict each other, or a file that is not there.
    """
    from lit_sb3_ray.tuning.sweeps.sweep import Sweep

    args = flags.values
    if len(args.seeds) > 1 and "seed" in flags.given:
        raise ConfigError("--seed is the first seed where --seeds is a number of them; here --seeds names the seeds")
    name = args.name or sweep_name(args.algos, args.envs)
    if not re.fullmatch(r"[\w.+=@-]+", name) or name.startswith("."):
        raise ConfigError(
            f"--name {name!r}: a name is made of letters, digits and any of '_.+=@-', and does not begin with '.'"
        )
    for flag, values in {"--algos": args.algos, "--envs": args.envs, "--seeds": args.seeds}.items():
        _check_once(flag, values)
    sweep = Sweep(
        folder=Path(args.log_folder) / "sweeps" / name,
        algos=tuple(args.algos),
        envs=tuple(args.envs),
        seeds=seeds_of(args.seeds, args.seed),
        settings=run_settings(args),
        cpus_per_run=args.cpus_per_run,
        gpus_per_run=args.gpus_per_run,
        n_jobs=args.n_jobs,
        max_failures=args.max_failures,
        ray_settings=ray_settings(args),
    )
    return sweep, args.resume or args.name is not None


def seeds_of(words: Sequence[int], first: int) -> tuple[int, ...]:
    """Reads `--seeds`.

    Args:
        words: One number of seeds, or several seeds.
        first: The first seed of so many.

    Raises:
        ConfigError: There would be none.
    """
    if len(words) > 1:
        return tuple(words)
    if words[0] < 1:
        raise ConfigError(f"--seeds {words[0]}: one number is how many seeds; for the seed 0 alone, --seeds 1")
    return tuple(range(first, first + words[0]))


def _check_once(flag: str, values: Sequence[Any]) -> None:
    """Refuses what is named twice: it would be trained once, and another was probably meant."""
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{flag} names {value} twice; each is trained once")
        seen.add(value)


def sweep_name(algos: Sequence[str], envs: Sequence[str]) -> str:
    """Names a sweep after what it combines."""
    name = re.sub(r"[^\w.+=@-]", "-", f"{'+'.join(algos)}_{'+'.join(envs)}").lstrip(".")
    return name[:LONGEST_NAME]


def run_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Collects what all runs are made with, by the names of `ExperimentManager`'s parameters.

    Raises:
        ConfigError: `--conf-file` names a file that is not there.
    """
    values = {name: value for name, value in vars(args).items() if name not in {*OWN_DEFAULTS, *RAY_DEFAULTS, "log_folder"}}
    if args.conf_file is not None and args.conf_file.endswith(FILES):
        if not os.path.isfile(args.conf_file):
            raise ConfigError(f"--conf-file {args.conf_file!r}: there is no such file")
        values["conf_file"] = os.path.abspath(args.conf_file)
    kept = {**values, "save_freq": args.save_freq} if args.save_freq is not None else values
    settings = {PARAMETERS.get(name, name): value for name, value in kept.items()}
    # What `args.yml` keeps of a run, so that `train --resume` can go on with it alone.
    return {**settings, "loggers": args.logger or (), "args": kept}


def progress_line(progress: Progress, width: int) -> str:
    """Writes where a sweep stands in one line.

    Args:
        progress: Where the runs stand.
        width: Columns that there are.
    """
    total = progress.waiting + len(progress.running) + progress.done + progress.failed
    failed = f", {progress.failed} failed" if progress.failed else ""
    parts = [f"{progress.done} of {total} done{failed}"]
    for combination, report in progress.running:
        steps, last = "starting", ""
        if report is not None and report.num_timesteps is not None and report.total:
            steps = f"{min(1.0, report.num_timesteps / report.total):.0%}"
            last = "" if report.last is None else f" {report.last:.1f}"
        parts.append(f"{combination.algo} {combination.env_id} {combination.seed}: {steps}{last}")
    line = " | ".join(parts)
    return line if len(line) < width else f"{line[: max(0, width - 4)]}..."


def _observer(verbose: int) -> Observer | None:
    from lit_sb3_ray.tuning.sweeps.dispatch import Observer

    class Lines(Observer):
        """Writes what happens, line by line."""

        def tell(self, line: str) -> None:
            print(line, flush=True)

    class Live(Observer):
        """Writes what happens, and below it one line that is always up to date."""

        shown = ""

        def tell(self, line: str) -> None:
            print(f"\r\x1b[K{line}\n{self.shown}", end="", flush=True)

        def show(self, progress: Progress) -> None:
            line = progress_line(progress, shutil.get_terminal_size().columns)
            if line != self.shown:
                self.shown = line
                print(f"\r\x1b[K{line}", end="", flush=True)

    if verbose < 1:
        return None
    return Live() if sys.stdout.isatty() else Lines()


def _report(result: SweepResult, flags: ParsedFlags) -> int:
    from lit_sb3_ray.tuning.sweeps.sweep_report import note, table

    if flags.values.verbose > 0 and sys.stdout.isatty():
        print("\r\x1b[K", end="")
    print(table(result.lines))
    if flags.values.verbose > 0:
        print(note())
        print(result.folder)
    for line in result.notes:
        print(line, file=sys.stderr)
    for row in result.failed:
        output = row.combination.output(result.folder)
        print(f"{row.combination} has failed: {row.failure} (its output: {output})", file=sys.stderr)
    if result.stop_signal is not None:
        print("Stopped and saved. Go on by the same command with --resume", file=sys.stderr)
        return 128 + result.stop_signal
    return 1 if result.failed else 0
