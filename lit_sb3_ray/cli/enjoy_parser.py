"""The flags of `enjoy`: the 22 of rl_zoo3, by name, short form, default and meaning."""

from __future__ import annotations

import re

from lit_sb3_ray.cli.flags import AssignmentsAction, FlagParser, whole_number


def build_parser() -> FlagParser:
    """Builds the parser of `enjoy`.

    Returns:
        The parser; unambiguous beginnings of a flag stand for the flag.
    """
    parser = FlagParser(
        prog="lit-sb3-ray enjoy",
        description="Play a trained agent, from a run of this package or of rl_zoo3, and report its episodes.",
    )
    _add_model(parser)
    _add_play(parser)
    return parser


def experiment_id(text: str) -> int | str:
    """Reads `--exp-id`: a number, or the unique id of a run started with `-uuid`.

    Args:
        text: The word as typed.

    Returns:
        The number, or the word.
    """
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else text


def _add_model(parser: FlagParser) -> None:
    group = parser.add_argument_group("which agent")
    group.add_argument("--algo", default="ppo", metavar="NAME", help="algorithm it was trained with (default: %(default)s)")
    group.add_argument("--env", default="CartPole-v1", metavar="ID", help="environment id (default: %(default)s)")
    group.add_argument(
        "-f", "--folder", default="rl-trained-agents", metavar="DIR", help="log folder its run is in (default: %(default)s)"
    )
    group.add_argument(
        "--exp-id",
        type=experiment_id,
        default=0,
        metavar="ID",
        help="number of the run, or (the beginning of) its unique id; 0 the latest (default), -1 no run folder",
    )
    group.add_argument("--load-best", action="store_true", help="the best model of the run instead of the final one")
    group.add_argument("--load-checkpoint", type=int, metavar="STEPS", help="the model saved at this number of env steps")
    group.add_argument("--load-last-checkpoint", action="store_true", help="the last model saved while training")
    group.add_argument("--device", default="auto", metavar="NAME", help="where the networks are (default: %(default)s)")
    group.add_argument(
        "--num-threads", type=int, default=-1, metavar="N", help="CPU threads for PyTorch; 0 or less as they are"
    )
    group.add_argument(
        "--custom-objects",
        action="store_true",
        help="accepted for rl_zoo3's sake: what training alone needs (schedules, learning rate) is always replaced on loading",
    )


def _add_play(parser: FlagParser) -> None:
    group = parser.add_argument_group("how to play")
    group.add_argument(
        "-n", "--n-timesteps", type=int, default=1000, metavar="N", help="steps in each environment (default: %(default)s)"
    )
    group.add_argument("--n-envs", type=whole_number(1), default=1, metavar="N", help="environments (default: %(default)s)")
    group.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of environments and actions (default: %(default)s)"
    )
    group.add_argument(
        "--deterministic", action="store_true", help="take the likeliest action (default, but for Atari and MiniGrid)"
    )
    group.add_argument(
        "--stochastic", action="store_true", help="draw actions (default for Atari and MiniGrid); goes over --deterministic"
    )
    group.add_argument("--no-render", action="store_true", help="show nothing; so it is anyway where there is no display")
    group.add_argument("--norm-reward", action="store_true", help="report rewards as VecNormalize scaled them in training")
    group.add_argument("--reward-log", default="", metavar="DIR", help="write monitor files of the episodes to DIR")
    group.add_argument(
        "--gym-packages",
        nargs="+",
        default=[],
        metavar="MODULE",
        help="modules to import first, because they register environments",
    )
    group.add_argument(
        "--env-kwargs",
        nargs="+",
        action=AssignmentsAction,
        metavar="KEY:VALUE",
        help="arguments of the environment's constructor, over those of the run; may be given several times",
    )
    group.add_argument("--verbose", type=int, default=1, metavar="LEVEL", help="0 nothing, 1 episodes and summary (default)")
    group.add_argument("-P", "--progress", action="store_true", help="show a progress bar")
