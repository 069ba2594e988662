"""The flags of `enjoy`: the 22 of rl_zoo3, by name, short form, default and meaning."""

from __future__ import annotations

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.play_flags import add_choice, add_play, add_run


def build_parser() -> FlagParser:
    """Builds the parser of `enjoy`.

    Returns:
        The parser; unambiguous beginnings of a flag stand for the flag.
    """
    parser = FlagParser(
        prog="lit-sb3-ray enjoy",
        description="Play a trained agent, from a run of this package or of rl_zoo3, and report its episodes.",
    )
    add_run(parser)
    add_choice(parser)
    add_play(parser)
    _add_report(parser)
    return parser


def _add_report(parser: FlagParser) -> None:
    group = parser.add_argument_group("what is shown")
    group.add_argument("--no-render", action="store_true", help="show nothing; so it is anyway where there is no display")
    group.add_argument("--norm-reward", action="store_true", help="report rewards as VecNormalize scaled them in training")
    group.add_argument("--reward-log", default="", metavar="DIR", help="write monitor files of the episodes to DIR")
    group.add_argument("--verbose", type=int, default=1, metavar="LEVEL", help="0 nothing, 1 episodes and summary (default)")
    group.add_argument("-P", "--progress", action="store_true", help="show a progress bar")
