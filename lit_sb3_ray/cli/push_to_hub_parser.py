"""The flags of `push-to-hub`: the 20 of rl_zoo3, by name, short form, default and meaning, and a few more."""

from __future__ import annotations

from lit_sb3_ray.cli.flags import FlagParser, whole_number
from lit_sb3_ray.cli.play_flags import add_choice, add_play, add_run_number, add_trust


def build_parser() -> FlagParser:
    """Builds the parser of `push-to-hub`.

    Returns:
        The parser; unambiguous beginnings of a flag stand for the flag.
    """
    parser = FlagParser(
        prog="lit-sb3-ray push-to-hub",
        description="Share a trained agent on the Hugging Face Hub, from a run of this package or of rl_zoo3: it is played, "
        "recorded where that can be done (-n steps), described in a model card, and uploaded, privately by default. The "
        "same command again goes on with an upload that was interrupted.",
    )
    _add_run(parser)
    add_choice(parser)
    _add_destination(parser)
    add_play(parser)
    _add_evaluation(parser)
    return parser


def _add_run(parser: FlagParser) -> None:
    group = parser.add_argument_group("which agent")
    group.add_argument("--algo", required=True, metavar="NAME", help="algorithm it was trained with")
    group.add_argument("--env", required=True, metavar="ID", help="environment id")
    group.add_argument("-f", "--folder", required=True, metavar="DIR", help="log folder its run is in")
    add_run_number(group)
    add_trust(group)


def _add_destination(parser: FlagParser) -> None:
    group = parser.add_argument_group("where it goes")
    group.add_argument("-orga", "--organization", required=True, metavar="NAME", help="you on the Hub, or an organization")
    group.add_argument("-name", "--repo-name", metavar="NAME", help="the repository's name (default: <algo>-<environment>)")
    group.add_argument(
        "-m",
        "--commit-message",
        default="Initial commit",
        metavar="TEXT",
        help="name of the commit (default: %(default)s)",
    )
    group.add_argument("--public", action="store_true", help="let everyone see it; a new repository is private otherwise")
    group.add_argument(
        "--token", metavar="TOKEN", help="access token with the right to write (default: HF_TOKEN, or that of `hf auth login`)"
    )


def _add_evaluation(parser: FlagParser) -> None:
    group = parser.add_argument_group("what is told of it")
    group.add_argument(
        "--eval-episodes",
        type=whole_number(1),
        default=10,
        metavar="N",
        help="episodes of the evaluation (default: %(default)s)",
    )
    group.add_argument("--no-render", action="store_true", help="make no replay video")
    group.add_argument("--verbose", type=int, default=1, metavar="LEVEL", help="0 warnings only, 1 what is done (default)")
