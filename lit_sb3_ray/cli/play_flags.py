"""The flags of commands that play a trained agent: which run, which of its models, and how it is played."""

from __future__ import annotations

import re

from lit_sb3_ray.cli.flags import AssignmentsAction, FlagGroup, FlagParser, whole_number


def experiment_id(text: str) -> int | str:
    """Reads `--exp-id`: a number, or the unique id of a run started with `-uuid`.

    Args:
        text: The word as typed.

    Returns:
        The number, or the word.
    """
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else text


def add_run(parser: FlagParser) -> None:
    """Adds the flags that say which run an agent is taken from, and where its networks are."""
    group = parser.add_argument_group("which agent")
    group.add_argument("--algo", default="ppo", metavar="NAME", help="algorithm it was trained with (default: %(default)s)")
    group.add_argument("--env", default="CartPole-v1", metavar="ID", help="environment id (default: %(default)s)")
    group.add_argument(
        "-f", "--folder", default="rl-trained-agents", metavar="DIR", help="log folder its run is in (default: %(default)s)"
    )
    add_run_number(group)
    group.add_argument(
        "--custom-objects",
        action="store_true",
        help="accepted for rl_zoo3's sake: what training alone needs (schedules, learning rate) is always replaced on loading",
    )
    add_trust(group)


def add_run_number(group: FlagGroup) -> None:
    """Adds the flags that say which of several runs it is, and how its networks are computed."""
    group.add_argument(
        "--exp-id",
        type=experiment_id,
        default=0,
        metavar="ID",
        help="number of the run, or (the beginning of) its unique id; 0 the latest (default), -1 no run folder",
    )
    group.add_argument("--device", default="auto", metavar="NAME", help="where the networks are (default: %(default)s)")
    group.add_argument(
        "--num-threads", type=int, default=-1, metavar="N", help="CPU threads for PyTorch; 0 or less as they are"
    )


def add_trust(group: FlagGroup) -> None:
    """Adds `--trust`."""
    group.add_argument(
        "--trust",
        action="store_true",
        help="read a downloaded model as if it were your own, which runs whatever code its maker has put into it",
    )


def add_gym_packages(group: FlagGroup) -> None:
    """Adds `--gym-packages`."""
    group.add_argument(
        "--gym-packages",
        nargs="+",
        default=[],
        metavar="MODULE",
        help="modules to import first, because they register environments",
    )


def add_choice(parser: FlagParser) -> None:
    """Adds the flags that say which of the run's models is meant."""
    group = parser.add_argument_group("which of the run's models (the final one without any of these)")
    choice = group.add_mutually_exclusive_group()
    choice.add_argument("--load-best", action="store_true", help="the best model of the run")
    choice.add_argument("--load-checkpoint", type=int, metavar="STEPS", help="the model saved at this number of env steps")
    choice.add_argument("--load-last-checkpoint", action="store_true", help="the last model saved while training")


def add_play(parser: FlagParser) -> None:
    """Adds the flags that say how the agent is played."""
    group = parser.add_argument_group("how to play")
    group.add_argument(
        "-n",
        "--n-timesteps",
        type=whole_number(1),
        default=1000,
        metavar="N",
        help="steps in each environment (default: %(default)s)",
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
    add_gym_packages(group)
    group.add_argument(
        "--env-kwargs",
        nargs="+",
        action=AssignmentsAction,
        metavar="KEY:VALUE",
        help="arguments of the environment's constructor, over those of the run; may be given several times",
    )
