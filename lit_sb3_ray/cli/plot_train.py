"""`lit-sb3-ray plot-train`: training curves of runs, out of their monitor files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lit_sb3_ray.cli.flags import FlagParser, whole_number
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.plot_flags import add_look, style_of


def build_parser() -> FlagParser:
    """Builds the parser of `plot-train`; the first nine flags are rl_zoo3's."""
    parser = FlagParser(
        prog="lit-sb3-ray plot-train",
        description="Draw training curves of runs, this package's and rl_zoo3's: the rolling mean of reward, length or "
        "success of the training episodes, one line a run, into a PNG, SVG or PDF file.",
    )
    runs = parser.add_argument_group("which runs")
    runs.add_argument("-a", "--algo", required=True, metavar="NAME", help="algorithm they were trained with")
    runs.add_argument("-e", "--env", nargs="+", required=True, metavar="ID", help="environments, by their exact ids")
    runs.add_argument("-f", "--exp-folder", required=True, metavar="DIR", help="log folder, such as logs")
    picture = parser.add_argument_group("the picture")
    picture.add_argument(
        "-x", "--x-axis", choices=("steps", "episodes", "time"), default="steps", help="x axis (default: %(default)s)"
    )
    picture.add_argument(
        "-y", "--y-axis", choices=("success", "reward", "length"), default="reward", help="y axis (default: %(default)s)"
    )
    picture.add_argument(
        "-w",
        "--episode-window",
        type=whole_number(1),
        default=100,
        metavar="N",
        help="episodes of the rolling mean; runs with fewer are not drawn (default: %(default)s)",
    )
    picture.add_argument(
        "-max", "--max-timesteps", type=whole_number(1), metavar="STEPS", help="leave out what is later than so many env steps"
    )
    add_look(picture)
    picture.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the picture; its suffix, .png, .svg or .pdf, is the format (default: training_<y axis>.png here)",
    )
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `plot-train`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input, nothing to draw, matplotlib missing, or an output that cannot be written.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(1)

    from lit_sb3_ray.plots import figures
    from lit_sb3_ray.plots.pictures import output_files, write_picture
    from lit_sb3_ray.plots.runs import check_runs, find_runs
    from lit_sb3_ray.plots.training_curves import X_LABELS, Y_LABELS, View, training_curves

    style = style_of(args)
    output = output_files(args.output or f"training_{args.y_axis}", "-o")
    folder = Path(args.exp_folder)
    check_runs([folder], [args.algo], args.env)
    runs = [run.path for env_id in dict.fromkeys(args.env) for run in find_runs(folder, args.algo, env_id)]
    view = View(args.x_axis, args.y_axis, args.episode_window, args.max_timesteps)
    label = Y_LABELS[view.y_axis]
    draw = figures.curves(training_curves(runs, view), (label, X_LABELS[view.x_axis], label), style)
    print(write_picture(output.picture, style, draw))
    return 0
