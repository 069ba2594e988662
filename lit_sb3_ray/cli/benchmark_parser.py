"""The flags of `benchmark`: rl_zoo3's by name, short form and meaning, and a few more."""

from __future__ import annotations

from lit_sb3_ray.cli.flags import FlagParser, whole_number
from lit_sb3_ray.cli.play_flags import add_gym_packages, add_trust
from lit_sb3_ray.cli.ray_flags import add_ray
from lit_sb3_ray.experiment.arguments import RAY_DEFAULTS


def build_parser() -> FlagParser:
    """Builds the parser of `benchmark`.

    Returns:
        The parser; unambiguous beginnings of a flag stand for the flag.
    """
    parser = FlagParser(
        prog="lit-sb3-ray benchmark",
        description="Play the agent of every run under a folder, of this package or of rl_zoo3, several at once on Ray, and "
        "write a table of what they come to, beside published figures. The same command again goes on where it stopped.",
        epilog="Exit code 1 when a run could not be played; the table says why, and the next start tries it again.",
    )
    _add_runs(parser)
    _add_play(parser)
    _add_table(parser)
    add_ray(parser)
    parser.set_defaults(**RAY_DEFAULTS)
    return parser


def _add_runs(parser: FlagParser) -> None:
    group = parser.add_argument_group("which runs")
    group.add_argument(
        "--log-dir", default="rl-trained-agents/", metavar="DIR", help="log folder of the runs (default: %(default)s)"
    )
    group.add_argument("--algo", nargs="+", default=[], metavar="NAME", help="only runs of these algorithms")
    group.add_argument("--env", nargs="+", default=[], metavar="ID", help="only runs in these environments")
    group.add_argument("--load-best", action="store_true", help="the best model of each run instead of the final one")
    group.add_argument("--with-mujoco", action="store_true", help="play the Fetch tasks, too, which are left out otherwise")
    group.add_argument("--test-mode", action="store_true", help="play the first run only, to try things out")
    group.add_argument(
        "--no-hub",
        action="store_true",
        help="accepted for rl_zoo3's sake: nothing is downloaded anyway; `load-from-hub` brings runs into the folder",
    )
    add_gym_packages(group)
    add_trust(group)


def _add_play(parser: FlagParser) -> None:
    group = parser.add_argument_group("how to play")
    group.add_argument(
        "-n",
        "--n-timesteps",
        type=whole_number(1),
        default=150_000,
        metavar="N",
        help="steps in each environment (default: %(default)s)",
    )
    group.add_argument(
        "--n-envs", type=whole_number(1), default=1, metavar="N", help="environments of each run (default: %(default)s)"
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of environments and actions (default: %(default)s)"
    )
    group.add_argument(
        "--num-threads",
        type=whole_number(1),
        default=1,
        metavar="N",
        help="CPU threads, and so CPUs, of each run (default: %(default)s, so that more are played at once; rl_zoo3 has 2)",
    )
    group.add_argument(
        "--n-jobs", type=whole_number(1), metavar="N", help="runs at once, at most (default: as many as there are CPUs for)"
    )


def _add_table(parser: FlagParser) -> None:
    group = parser.add_argument_group("what it leaves")
    group.add_argument(
        "--benchmark-dir",
        default="logs/benchmark/",
        metavar="DIR",
        help="folder for benchmark.md, benchmark.csv, and the results to go on from (default: %(default)s)",
    )
    group.add_argument(
        "--published",
        metavar="FILE",
        help="figures to stand beside ours: CSV, or a Markdown table such as rl_zoo3's benchmark.md, with the columns algo, "
        "env_id, mean_reward (default: those of rl_zoo3, which come with the package; 'none' for none)",
    )
    group.add_argument("--verbose", type=int, default=1, metavar="LEVEL", help="0 nothing, 1 each run and the table (default)")
