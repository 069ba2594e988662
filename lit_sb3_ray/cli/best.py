"""`lit-sb3-ray best`: the best trials of a study as hyperparameter files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lit_sb3_ray.cli.flags import FlagParser, whole_number
from lit_sb3_ray.cli.named_study import add_named_study
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.errors import ConfigError


def build_parser() -> FlagParser:
    """Builds the parser of `best`."""
    parser = FlagParser(
        prog="lit-sb3-ray best",
        description="Print or save the hyperparameters of a study's best trials as YAML, for `train --conf-file`.",
    )
    add_named_study(parser)
    parser.add_argument(
        "-k",
        "--number",
        type=whole_number(1),
        default=1,
        metavar="K",
        help="how many trials; several are written as a list (default: %(default)s)",
    )
    parser.add_argument("--save", metavar="FILE", help="write to FILE instead of printing")
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `best`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input, no such study, no complete trial, or a file that cannot be written.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(0)

    from lit_sb3_ray.experiment.run_folder import check_writable, replace_file
    from lit_sb3_ray.tuning.locate import find_study
    from lit_sb3_ray.tuning.reports.best import as_file, best_trials
    from lit_sb3_ray.tuning.reports.record import record

    best = best_trials(record(find_study(args.study, args.storage, args.study_name)), args.number)
    text = as_file(best)
    if args.save is None:
        print(text, end="")
        return 0
    path = Path(args.save)
    if path.is_dir():
        raise ConfigError(f"--save {args.save!r} is a folder: name a file")
    check_writable(path.parent, "--save")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--save {args.save!r} cannot be written: {error.strerror or error}") from error
    print(f"{path}: {'trial' if len(best) == 1 else 'trials'} {', '.join(str(one.trial.number) for one in best)}")
    return 0
