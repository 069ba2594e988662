"""`lit-sb3-ray report`: writes a study's reports again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.named_study import add_named_study
from lit_sb3_ray.cli.output import set_up_logging


def build_parser() -> FlagParser:
    """Builds the parser of `report`."""
    parser = FlagParser(
        prog="lit-sb3-ray report",
        description="Write the reports of a study, running or finished: report.html, figures, best.yml and a table (CSV).",
    )
    add_named_study(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="where the files go (default: the study's folder, the table beside it; or ./<study name>_report)",
    )
    parser.add_argument("--no-optim-plots", action="store_true", help="leave the figures out")
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `report`.

    Returns:
        0, or 1 when a file could not be written; those that could are told all the same.

    Raises:
        ConfigError: Bad input, no such study, or a folder that cannot be written.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(1)

    from lit_sb3_ray.experiment.run_folder import check_writable
    from lit_sb3_ray.tuning.locate import locate_study
    from lit_sb3_ray.tuning.reports.report import write_reports
    from lit_sb3_ray.tuning.study_folder import file_name

    found = locate_study(args.study, args.storage, args.study_name)
    folder = Path(args.output) if args.output else found.folder or Path(f"{file_name(found.study.study_name)}_report")
    check_writable(folder, "-o")
    # `tune` has the table beside the study's folder, as rl_zoo3 does.
    tables = found.folder.absolute().parent if found.folder is not None and not args.output else None
    files = write_reports(found.study, folder, no_optim_plots=args.no_optim_plots, tables=tables)
    for path in files.paths:
        print(path)
    # What went wrong has been logged.
    return 1 if files.problems else 0
