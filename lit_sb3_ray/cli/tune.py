"""`lit-sb3-ray tune`: a study of an algorithm's hyperparameters on an environment."""

from __future__ import annotations

import argparse
import atexit
import gc
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.cli.flags import FlagParser, ParsedFlags, parse_flags
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.stopping import terminable
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import STUDY_RESUME_MAY_CHANGE, train_arguments

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.tuning.study import StudyResult

# What `--resume` and `--join` mean without a folder: the study that --storage and --study-name name.
NAMED = "."


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `tune`.

    Returns:
        0; 1 when no trial is complete; 128 + the signal's number when a signal ended the study.

    Raises:
        ConfigError: Bad input, found before any trial starts.
    """
    from lit_sb3_ray.cli.train import build_manager, check_settings

    with terminable():
        args = study_settings(parse_flags(build_parser(), argv, train_arguments({"optimize_hyperparameters": True})))
        check_settings(args)
        set_up_logging(args.verbose)
        manager = build_manager(args)
        return tell_plan(manager) if args.dry_run else optimize(manager, args)


def build_parser() -> FlagParser:
    """Builds the parser of `tune`: what `train` takes and a study can use."""
    from lit_sb3_ray.cli.train_parser import add_training

    parser = FlagParser(
        prog="lit-sb3-ray tune",
        description="Search hyperparameters: many trials at once on Ray, drawn by Optuna, poor ones cut short.",
        epilog="Exit codes: 0 done, 1 no trial is complete, 2 bad input, 130 and 143 stopped by a signal; "
        "--resume goes on with a study that was stopped or killed.",
    )
    add_training(parser)
    entrance = parser.add_mutually_exclusive_group()
    study = "the study in this folder, or the one that --storage and --study-name name"
    entrance.add_argument("--resume", nargs="?", const=NAMED, metavar="STUDY", help=f"go on with {study}; nobody works on it")
    entrance.add_argument("--join", nargs="?", const=NAMED, metavar="STUDY", help=f"help with {study}, beside who works on it")
    parser.set_defaults(**train_arguments({"optimize_hyperparameters": True}))
    return parser


def study_settings(flags: ParsedFlags) -> argparse.Namespace:
    """Settles a study's settings: those of the command line, laid over those of the study to go on with.

    Args:
        flags: The parsed command line.

    Returns:
        The settings, with storage and name of a study to go on with.

    Raises:
        ConfigError: There is no such study, or a flag contradicts it.
    """
    from lit_sb3_ray.cli.train import drawn_seed

    args, given = flags.values, flags.given
    where = args.resume or args.join
    if where == NAMED:
        where = _folder_of(args, given)
    if not where:
        args.seed = drawn_seed(args.seed)
        return args
    from lit_sb3_ray.tuning.study_folder import from_anywhere, open_study_folder

    folder, storage, name, saved = open_study_folder(where)
    known, meant = from_anywhere(saved), from_anywhere(given)
    for key, value in given.items():
        if key not in STUDY_RESUME_MAY_CHANGE and known.get(key, meant[key]) != meant[key]:
            raise ConfigError(f"--{key.replace('_', '-')} {value!r} contradicts the study {where}, which has {saved[key]!r}")
    if "n_trials" in given:
        # What was given when the study was begun would go over it.
        saved = {**saved, "max_total_trials": None}
    found = {"storage": storage, "study_name": name, "optimize_hyperparameters": True, "dry_run": False}
    # The folder may have been moved since.
    found["log_folder"] = str(folder.path.parent.parent)
    entrance = {"resume": where if args.resume else "", "join": where if args.join else ""}
    settled = argparse.Namespace(**train_arguments({**saved, **given, **found, **entrance}))
    settled.seed = drawn_seed(settled.seed)
    return settled


def _folder_of(args: argparse.Namespace, given: Mapping[str, Any]) -> str | None:
    """Finds the folder of the study that is meant; where that is on another machine, its seed and its total count."""
    from lit_sb3_ray.tuning.checking import FOLDER, SEED, TOTAL
    from lit_sb3_ray.tuning.storage import load_study
    from lit_sb3_ray.tuning.study_folder import StudyFolder, folder_beside

    if not args.storage and StudyFolder(Path(NAMED)).settings.is_file():
        return NAMED
    if not (args.storage and args.study_name):
        raise ConfigError("--resume and --join without a folder need --storage and --study-name")
    known = load_study(args.storage, args.study_name).user_attrs
    folder = str(known.get(FOLDER, ""))
    if folder and StudyFolder(Path(folder)).settings.is_file():
        return folder
    moved = folder_beside(args.storage, args.study_name)
    if moved is not None:
        return str(moved.path)
    if "n_trials" not in given:
        args.n_trials = known.get(TOTAL, args.n_trials)
    if "seed" not in given:
        args.seed = known.get(SEED, args.seed)
    return None


def tell_plan(manager: ExperimentManager) -> int:
    """Tells what a manager's study would do, once what it searches and how is found to be in order.

    Args:
        manager: The study's manager.

    Returns:
        0.

    Raises:
        ConfigError: It is not.
    """
    from lit_sb3_ray.tuning.checking import check_study

    check_study(manager)
    print(manager.describe())
    return 0


def optimize(manager: ExperimentManager, args: argparse.Namespace) -> int:
    """Runs a manager's study and tells what it has found.

    Args:
        manager: The study's manager.
        args: The settings.

    Returns:
        The exit code.
    """
    # With Ray, torch and all that loaded, Python would look through millions of objects as it ends, twice, for cycles.
    atexit.register(gc.freeze)
    talks = args.verbose > 0
    if talks:
        print(f"Study of {args.algo} on {args.env}, seed {args.seed}", flush=True)
    with terminable():
        result = manager.hyperparameters_optimization()
    if result.number is None:
        print(f"No trial is complete; what happened is in {_shown(result.page or result.folder)}", file=sys.stderr)
    if talks:
        print("\n".join(_found(result)))
    if manager.stop_signal is not None:
        _tell_how_to_go_on("Stopped", result.folder)
        return 128 + manager.stop_signal
    if result.missing:
        _tell_how_to_go_on(f"Ended with {result.missing} trials to go", result.folder)
    return 0 if result.number is not None else 1


def _found(result: StudyResult) -> list[str]:
    """What a study has found and where it is, a line each thing."""
    lines = []
    if result.number is not None:
        lines.append(f"Best trial: {result.number}, value {result.value:.2f}")
        lines += [f"  {name}: {value}" for name, value in result.params.items()]
        if result.best_path is not None:
            words = [*result.train_words, "--conf-file", _shown(result.best_path)]
            lines.append(f"Train with it: {shlex.join(words)}")
    lines += [_shown(path) for path in (result.page, result.path, result.folder) if path is not None]
    if result.retrained is not None:
        summary = result.retrained.summary or "none is finished"
        lines.append(f"Trained again with {len(result.retrained.values)} fresh seeds: {summary}")
    return lines


def _tell_how_to_go_on(what: str, folder: Path) -> None:
    print(f"{what}. Go on with: lit-sb3-ray tune --resume {shlex.quote(_shown(folder))}", file=sys.stderr)


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
