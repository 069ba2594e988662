"""The flags of `plot-from-file`: the 20 of rl_zoo3, by name, short form, default and meaning, and three more."""

from __future__ import annotations

import argparse
import math

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.plot_flags import add_format, add_look


def build_parser() -> FlagParser:
    """Builds the parser of `plot-from-file`."""
    parser = FlagParser(
        prog="lit-sb3-ray plot-from-file",
        description="Compare results that all-plots -o, or rl_zoo3's all_plots, has written: learning curves, bars and boxes, "
        "and aggregates over environments with bootstrap intervals, as pictures and tables.",
    )
    _add_results(parser)
    _add_pictures(parser)
    _add_output(parser)
    return parser


def part(text: str) -> float:
    """Reads a number between 0 and 1, both excluded.

    Args:
        text: The word as typed.

    Returns:
        The number.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return number


def _add_results(parser: FlagParser) -> None:
    group = parser.add_argument_group("which results")
    group.add_argument(
        "-i",
        "--input",
        required=True,
        metavar="FILE",
        help="results file, .npz or rl_zoo3's .pkl; the ending may be left out",
    )
    group.add_argument("--merge", nargs="+", default=[], metavar="FILE", help="further results files to add")
    for flag, what in (("env", "environments"), ("key", "keys, such as PPO-logs")):
        short = ["-skip"] if flag == "env" else []
        group.add_argument(*short, f"--skip-{flag}s", nargs="+", default=[], metavar="NAME", help=f"{what} to leave out")
        group.add_argument(f"--keep-{flag}s", nargs="+", default=[], metavar="NAME", help=f"{what} to keep, and no others")
    group.add_argument("-l", "--labels", nargs="+", metavar="LABEL", help="other names for the keys, in their order")


def _add_pictures(parser: FlagParser) -> None:
    group = parser.add_argument_group("what is drawn")
    group.add_argument("--skip-timesteps", action="store_true", help="no learning curves")
    group.add_argument("-b", "--boxplot", action="store_true", help="boxes of the last evaluations, too")
    group.add_argument(
        "-r",
        "--rliable",
        action="store_true",
        help="median, IQM, mean and optimality gap over environments with bootstrap intervals, and performance profiles",
    )
    group.add_argument("-vs", "--versus", action="store_true", help="the probability that one key is better than another")
    group.add_argument("-iqm", "--iqm", action="store_true", help="the IQM over the evaluations: sample efficiency")
    group.add_argument(
        "-ci", "--ci-size", type=part, default=0.95, metavar="PART", help="confidence of intervals (default: %(default)s)"
    )
    group.add_argument(
        "--reference-scores",
        nargs="+",
        default=[],
        metavar="ENV=LOW,HIGH",
        help="scores that count as 0 and 1 in aggregates; rl_zoo3's six are built in, others' scores are taken as they are",
    )
    group.add_argument("--no-million", action="store_true", help="env steps as they are, not in millions")


def _add_output(parser: FlagParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        metavar="NAME",
        help="the picture of the bars; the others, and tables as NAME.md, NAME.tex, NAME.csv, lie beside it "
        "(default: pictures alone, named after the input, here)",
    )
    add_format(group, "svg")
    group.add_argument(
        "-loc", "--legend-loc", default="best", metavar="PLACE", help="where legends are (default: %(default)s)"
    )
    add_look(group)
    group.add_argument("-latex", "--latex", action="store_true", help="set the text of pictures with LaTeX")
