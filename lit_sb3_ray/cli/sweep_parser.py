"""The flags of `sweep`: what to combine, how many runs at once, and those of `train` that all runs share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lit_sb3_ray.cli.flags import AssignmentsAction, FlagParser, positive_number, whole_number
from lit_sb3_ray.cli.ray_flags import add_ray
from lit_sb3_ray.cli.train_parser import add_envs, add_evaluation, add_speed
from lit_sb3_ray.experiment.arguments import train_arguments

LOGGERS = ("tensorboard", "csv", "mlflow")
OWN_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "algos": ("ppo",),
        "envs": ("CartPole-v1",),
        "seeds": (5,),
        "seed": 0,
        "save_freq": None,
        "name": None,
        "resume": False,
        "n_jobs": None,
        "cpus_per_run": None,
        "gpus_per_run": 0.0,
        "max_failures": 3,
    }
)


def sweep_arguments() -> dict[str, Any]:
    """All settings of `sweep` with their defaults; those that `train` has too are as there."""
    names = vars(_parser().parse_args([]))
    defaults = {**train_arguments(), **OWN_DEFAULTS}
    return {name: defaults[name] for name in names}


def build_parser() -> FlagParser:
    """Builds the parser of `sweep`.

    Returns:
        The parser; its defaults are `sweep_arguments()`, and unambiguous beginnings of a flag stand for the flag.
    """
    parser = _parser()
    parser.set_defaults(**sweep_arguments())
    return parser


def _parser() -> FlagParser:
    parser = FlagParser(
        prog="lit-sb3-ray sweep",
        description="Train every combination of algorithms, environments and seeds side by side, each in a run folder of its "
        "own, and compare the final returns: mean, median and interquartile mean with bootstrap intervals.",
        epilog="All of it lies in DIR/sweeps/NAME: run folders, the output of each run, sweep.csv, summary.csv, summary.md, "
        "curves.csv. Without --save-freq a run takes a checkpoint each tenth of its env steps. Exit codes: 0 done, 1 some "
        "runs have failed, 2 bad input, 130 and 143 stopped by a signal after saving.",
    )
    _add_combinations(parser)
    _add_carrying_out(parser)
    add_envs(parser)
    add_evaluation(parser)
    _add_logging(parser)
    add_speed(parser)
    add_ray(parser)
    return parser


def gpu_share(text: str) -> float:
    """Reads a number of GPUs, 0 included."""
    return 0.0 if text.strip() in ("0", "0.0") else positive_number(text)


def _add_combinations(parser: FlagParser) -> None:
    group = parser.add_argument_group("what to combine")
    group.add_argument("--algos", nargs="+", metavar="NAME", help="algorithms (default: ppo)")
    group.add_argument("--envs", nargs="+", metavar="ID", help="environment ids (default: CartPole-v1)")
    group.add_argument(
        "--seeds",
        nargs="+",
        type=whole_number(0),
        metavar="N",
        help="one number is how many: 5 means the seeds 0 to 4, or as many from --seed on; several numbers are the seeds "
        "themselves (default: 5)",
    )
    group.add_argument("--seed", type=whole_number(0), metavar="S", help="the first seed, where --seeds is a number of them")
    group.add_argument(
        "-n", "--n-timesteps", type=int, metavar="N", help="env steps of each run; 0 or less takes the config's number"
    )
    group.add_argument(
        "-conf",
        "--conf-file",
        metavar="FILE",
        help="hyperparameters of all algorithms: a YAML file, a .py file or a module (default: the packaged ones of each)",
    )
    group.add_argument(
        "-params",
        "--hyperparams",
        nargs="+",
        action=AssignmentsAction,
        metavar="KEY:VALUE",
        help="hyperparameters over those of the file, for all runs; may be given several times",
    )


def _add_carrying_out(parser: FlagParser) -> None:
    group = parser.add_argument_group("how it is carried out")
    group.add_argument(
        "--name", metavar="NAME", help="the sweep's name; given again, it goes on (default: algorithms and environments)"
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on with the sweep of this name: finished runs stay, others go on from their last checkpoint; more "
        "algorithms, environments and seeds may be named than before",
    )
    group.add_argument(
        "--n-jobs",
        "--max-concurrent",
        type=whole_number(1),
        metavar="N",
        help="runs at once, at most (default: as many as fit)",
    )
    group.add_argument(
        "--cpus-per-run",
        type=positive_number,
        metavar="X",
        help="CPUs of a run (default: 1, and with env actors one more for each environment as far as a node has them)",
    )
    group.add_argument(
        "--gpus-per-run", type=gpu_share, metavar="X", help="1 for a GPU of its own for each run, or a part (default: 0)"
    )
    group.add_argument(
        "--max-failures",
        type=whole_number(0),
        metavar="N",
        help="how often a run whose process or node is lost is started again (default: %(default)s); what the run itself "
        "raises is not tried again",
    )


def _add_logging(parser: FlagParser) -> None:
    group = parser.add_argument_group("logging")
    group.add_argument(
        "--verbose", type=int, metavar="LEVEL", help="0 prints the table only, 1 what happens (default), 2 more in each output"
    )
    group.add_argument(
        "--logger",
        nargs="+",
        choices=LOGGERS,
        metavar="NAME",
        help=f"metrics of each run go to any of {', '.join(LOGGERS)}, too",
    )
    group.add_argument(
        "--log-interval",
        type=int,
        metavar="N",
        help="iterations (on policy) or episodes (off policy) between logs; -1 the algorithm's own, below -1 none",
    )
    group.add_argument("--log-freq", type=int, metavar="N", help="env steps between logs, instead of --log-interval")
