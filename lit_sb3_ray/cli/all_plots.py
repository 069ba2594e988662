"""`lit-sb3-ray all-plots`: evaluations of many runs together, as curves and a table, and as a file for plot-from-file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.plot_flags import add_format, print_table, style_of, write_tables
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from lit_sb3_ray.plots.results import Results


def build_parser() -> FlagParser:
    """Builds the parser of `all-plots`: rl_zoo3's twelve flags, `--format` and `--table`."""
    parser = FlagParser(
        prog="lit-sb3-ray all-plots",
        description="Compare the evaluations of many runs, this package's and rl_zoo3's: mean and standard error over runs of "
        "each algorithm and folder, as a picture an environment, a table, and a file for plot-from-file.",
    )
    _add_runs(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o",
        "--output",
        metavar="NAME",
        help="write NAME.npz for plot-from-file, tables NAME.md, NAME.tex, NAME.csv, and pictures NAME_<env>.png "
        "(default: pictures alone, results_<env>.png here)",
    )
    add_format(output, "png")
    output.add_argument("-median", "--median", action="store_true", help="the median in tables, not mean and standard error")
    output.add_argument("--no-million", action="store_true", help="env steps as they are, not in millions")
    output.add_argument("--no-display", action="store_true", help="draw no pictures")
    output.add_argument("-print", "--print-n-trials", action="store_true", help="print of how many runs each result is, too")
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `all-plots`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input, nothing to compare, matplotlib missing, or an output that cannot be written.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(1)

    from lit_sb3_ray.plots.aggregates import Limits
    from lit_sb3_ray.plots.comparison import draw_learning_curves
    from lit_sb3_ray.plots.pictures import output_files
    from lit_sb3_ray.plots.results import gather
    from lit_sb3_ray.plots.results_file import write_results
    from lit_sb3_ray.plots.tables import results_table

    style = None if args.no_display else style_of(args)
    output = None
    if args.output or style is not None:
        output = output_files(args.output or "results", "-o", format=args.format, other=(".npz", ".pkl"))
    folders = labelled_folders(args.exp_folders, args.labels)
    results = gather(folders, args.algos, args.env, Limits(args.max_timesteps, args.min_timesteps), args.key)
    results = replace(results, median=args.median)
    if args.print_n_trials:
        _print_counts(results)
    table = results_table(results)
    print_table(table, args.table)
    if output is not None and args.output:
        print(output.write(".npz", lambda path: write_results(results, path)))
        write_tables(table, output)
    if output is not None and style is not None:
        for path in draw_learning_curves(results, output, style, million=not args.no_million):
            print(path)
    return 0


def labelled_folders(folders: Sequence[str], labels: Sequence[str] | None) -> dict[str, Path]:
    """Gives each log folder its label.

    Args:
        folders: The folders as given.
        labels: As many labels; None for the folders' own names.

    Raises:
        ConfigError: There are more or fewer labels than folders, or a label is there twice.
    """
    names = list(folders if labels is None else labels)
    if len(names) != len(folders):
        raise ConfigError(f"--labels gives {len(names)} labels for {len(folders)} folders: give one a folder")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{twice[0]!r} stands for two folders: tell them apart with --labels")
    return dict(zip(names, map(Path, folders), strict=True))


def _add_runs(parser: FlagParser) -> None:
    group = parser.add_argument_group("which runs")
    group.add_argument("-a", "--algos", nargs="+", required=True, metavar="NAME", help="algorithms")
    group.add_argument("-e", "--env", nargs="+", required=True, metavar="ID", help="environments, by their exact ids")
    group.add_argument("-f", "--exp-folders", nargs="+", required=True, metavar="DIR", help="log folders")
    group.add_argument("-l", "--labels", nargs="+", metavar="LABEL", help="a label a folder (default: the folders)")
    group.add_argument(
        "-k",
        "--key",
        default="results",
        metavar="ARRAY",
        help="what of evaluations.npz: results (the returns, default), ep_lengths, or successes",
    )
    group.add_argument(
        "-max",
        "--max-timesteps",
        type=int,
        default=int(2e6),
        metavar="STEPS",
        help="leave out evaluations later than so many env steps (default: %(default)s)",
    )
    group.add_argument(
        "-min",
        "--min-timesteps",
        type=int,
        default=-1,
        metavar="STEPS",
        help="leave out runs that did not come so far, and bring the others to the same evaluations (default: runs with the "
        "most evaluations only)",
    )


def _print_counts(results: Results) -> None:
    for env_id, found in results.environments.items():
        for key, result in found.items():
            print(f"{env_id}-{key}: {result.n_runs}")
