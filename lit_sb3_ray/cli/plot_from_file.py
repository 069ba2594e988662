"""`lit-sb3-ray plot-from-file`: results that all-plots has written, as curves, bars, boxes, aggregates and tables."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.plot_flags import print_table, style_of, write_tables
from lit_sb3_ray.cli.plot_from_file_parser import build_parser
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from lit_sb3_ray.plots.pictures import Output, Style
    from lit_sb3_ray.plots.results import Results
    from lit_sb3_ray.plots.scores import Scores
    from lit_sb3_ray.plots.tables import Table

logger = logging.getLogger(__name__)

FEW_RUNS = 3
"""With fewer runs an interval says little, with one nothing."""


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `plot-from-file`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input, no such results, a package missing, or an output that cannot be written.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(1)

    from lit_sb3_ray.plots.comparison import draw_last_evaluations, draw_learning_curves
    from lit_sb3_ray.plots.pictures import output_files
    from lit_sb3_ray.plots.reference_scores import REFERENCE_SCORES, parse_ranges
    from lit_sb3_ray.plots.scores import score_matrices
    from lit_sb3_ray.plots.tables import results_table

    style = style_of(args, legend_loc=args.legend_loc, latex=args.latex)
    aggregated = args.rliable or args.versus or args.iqm
    if aggregated:
        from lit_sb3_ray.plots.estimates import check_rliable

        check_rliable()
    ranges = {**REFERENCE_SCORES, **parse_ranges(args.reference_scores, "--reference-scores")}
    results = load_results(args)
    endings = (".npz", ".pkl", ".pickle")
    output = output_files(args.output or Path(args.input).name, "-o", format=args.format, default="svg", other=endings)
    scores = score_matrices(results, ranges) if aggregated else None
    if scores is not None and args.versus and len(scores.last) < 2:
        raise ConfigError(f"--versus compares two keys or more, and there is only {', '.join(scores.last)}")
    _tell(results_table(results), args, output)
    if not args.skip_timesteps:
        for path in draw_learning_curves(results, output, style, million=not args.no_million, what="curve_"):
            print(path)
    for path in draw_last_evaluations(results, output, style, boxplot=args.boxplot):
        print(path)
    if scores is not None:
        _aggregate(scores, args, output, style)
    return 0


def load_results(args: argparse.Namespace) -> Results:
    """Reads the files and narrows the results down to what is asked for.

    Args:
        args: The flags.

    Raises:
        ConfigError: A file cannot be read, or a name is none of theirs.
    """
    from lit_sb3_ray.plots.results import Selection, merge, relabel, select
    from lit_sb3_ray.plots.results_file import read_results

    results = read_results(args.input, "-i")
    for name in args.merge:
        results = merge(results, read_results(name, "--merge"))
    results = select(results, Selection(args.skip_envs, args.keep_envs, args.skip_keys, args.keep_keys))
    return results if args.labels is None else relabel(results, args.labels)


def _aggregate(scores: Scores, args: argparse.Namespace, output: Output, style: Style) -> None:
    from lit_sb3_ray.plots import comparison, estimates
    from lit_sb3_ray.plots.tables import estimates_table

    if scores.n_runs < FEW_RUNS:
        logger.warning("intervals over fewer than %d runs say little, and over one run nothing", FEW_RUNS)
    if args.rliable:
        metrics = estimates.aggregate_metrics(scores.last, args.ci_size, gap=scores.normalized)
        _tell(estimates_table(metrics, "Key"), args, output, "_metrics")
        print(comparison.draw_estimates(metrics, scores, output, style))
        print(comparison.draw_profiles(scores, args.ci_size, output, style))
    if args.versus:
        pairs = {"P(X > Y)": estimates.probabilities_of_improvement(scores.last, args.ci_size)}
        _tell(estimates_table(pairs, "Pair"), args, output, "_improvement")
        print(comparison.draw_improvement(pairs, output, style))
    if args.iqm:
        print(comparison.draw_sample_efficiency(scores, args.ci_size, output, style, million=not args.no_million))


def _tell(table: Table, args: argparse.Namespace, output: Output, what: str = "") -> None:
    print_table(table, args.table)
    if args.output:
        write_tables(table, output, what)
