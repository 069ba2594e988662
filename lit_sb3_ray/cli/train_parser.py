"""The flags of `train`: the 43 of rl_zoo3, by name, short form, default and meaning, and this package's own."""

from __future__ import annotations

from lit_sb3_ray.cli.flags import AssignmentsAction, FlagParser, boolean, number_or_auto, positive_number, whole_number
from lit_sb3_ray.cli.ray_flags import add_placement, add_ray
from lit_sb3_ray.cli.study_flags import add_study
from lit_sb3_ray.experiment.arguments import train_arguments

LOGGERS = ("tensorboard", "csv", "wandb", "mlflow", "none")


def build_parser() -> FlagParser:
    """Builds the parser of `train`.

    Returns:
        The parser; its defaults are `train_arguments()`, and unambiguous beginnings of a flag stand for the flag.
    """
    parser = FlagParser(
        prog="lit-sb3-ray train",
        description="Train one agent with tuned hyperparameters, evaluate it and save it in a run folder.",
        epilog="Frequencies are in env steps, whatever the number of envs. Exit codes: 0 done, 2 bad input, "
        "130 and 143 stopped by a signal after saving, 1 any other error.",
    )
    add_training(parser)
    _add_start(parser)
    _add_trial(parser)
    _add_devices(parser)
    parser.set_defaults(**train_arguments())
    return parser


def add_training(parser: FlagParser) -> None:
    """Adds to a parser what `train` and `tune` share.

    Args:
        parser: The parser.
    """
    _add_experiment(parser)
    add_envs(parser)
    add_evaluation(parser)
    _add_logging(parser)
    add_speed(parser)
    add_ray(parser)
    add_placement(parser)
    add_study(parser)


def _add_experiment(parser: FlagParser) -> None:
    group = parser.add_argument_group("experiment")
    group.add_argument(
        "--algo", metavar="NAME", help="algorithm: ppo, a2c, sac, ... or pkg.mod:Class with SB3's interface (default: ppo)"
    )
    group.add_argument("--env", metavar="ID", help="environment id (default: CartPole-v1)")
    group.add_argument(
        "-n", "--n-timesteps", type=int, metavar="N", help="env steps to train for; 0 or less takes the config's number"
    )
    group.add_argument(
        "--seed", type=int, metavar="S", help="fixes everything random; negative (default) draws one and notes it"
    )
    group.add_argument(
        "-conf",
        "--conf-file",
        metavar="FILE",
        help="hyperparameters: a YAML file, a .py file or a module with a dict `hyperparams` (default: the packaged ones)",
    )
    group.add_argument(
        "-params",
        "--hyperparams",
        nargs="+",
        action=AssignmentsAction,
        metavar="KEY:VALUE",
        help="hyperparameters over those of the file, such as learning_rate:0.01 or policy_kwargs:'dict(net_arch=[64])'; "
        "may be given several times",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="print what would be trained and written, start and write nothing"
    )


def _add_start(parser: FlagParser) -> None:
    group = parser.add_argument_group("going on from what is there")
    group.add_argument(
        "-i",
        "--trained-agent",
        metavar="ZIP",
        help="start from this model's weights in a new run (to go on with a run: --resume)",
    )
    group.add_argument(
        "--truncate-last-trajectory",
        type=boolean,
        nargs="?",
        const=True,
        metavar="True|False",
        help="with -i and a HER buffer: close the trajectory that the saved buffer ends in (default: True)",
    )
    group.add_argument(
        "--resume", metavar="RUN", help="go on with the run in this folder, from its last checkpoint and with its settings"
    )
    group.add_argument("-uuid", "--uuid", action="store_true", help="end the run folder's name with a unique id")


def add_envs(parser: FlagParser) -> None:
    """Adds the flags of environments."""
    group = parser.add_argument_group("environments")
    group.add_argument(
        "--gym-packages", nargs="+", metavar="MODULE", help="modules to import first, because they register environments"
    )
    group.add_argument(
        "--env-kwargs",
        nargs="+",
        action=AssignmentsAction,
        metavar="KEY:VALUE",
        help="arguments of the environment's constructor; may be given several times",
    )
    group.add_argument(
        "--eval-env-kwargs",
        nargs="+",
        action=AssignmentsAction,
        metavar="KEY:VALUE",
        help="the same for evaluation environments (default: those of --env-kwargs)",
    )
    group.add_argument(
        "--n-envs", type=whole_number(1), metavar="N", help="training environments (default: the config's number)"
    )
    group.add_argument(
        "--vec-env",
        choices=("auto", "ray", "dummy", "subproc"),
        help="where the environments run: in this process (dummy), in Ray actors (ray; subproc means the same), or where "
        "training is over first by a step that is timed at the start (auto, the default)",
    )
    group.add_argument(
        "--envs-per-actor",
        type=number_or_auto,
        metavar="N|auto",
        help="environments that a Ray actor steps at most; auto (default): as many actors as there are processors",
    )
    group.add_argument(
        "--env-cpus",
        type=positive_number,
        metavar="X",
        help="CPUs that Ray reserves for each env actor, such as 0.5 (default: an equal share of the free ones, at most 1)",
    )
    group.add_argument(
        "--env-timeout",
        type=positive_number,
        metavar="S",
        help="seconds after which an environment that does not answer is replaced; with --vec-env auto, too, all then run in "
        "Ray actors (default: never)",
    )
    group.add_argument(
        "--max-env-restarts",
        type=whole_number(0),
        metavar="K",
        help="how often each env actor may be replaced, one that has died or hangs (default: %(default)s)",
    )


def add_evaluation(parser: FlagParser) -> None:
    """Adds the flags of evaluation and saving."""
    group = parser.add_argument_group("evaluation and saving")
    group.add_argument(
        "--eval-freq", type=int, metavar="N", help="evaluate every N env steps; 0 or less never (default: %(default)s)"
    )
    group.add_argument(
        "--eval-episodes", type=whole_number(1), metavar="N", help="episodes an evaluation (default: %(default)s)"
    )
    group.add_argument(
        "--n-eval-envs", type=whole_number(1), metavar="N", help="evaluation environments (default: %(default)s)"
    )
    group.add_argument(
        "--async-eval",
        action="store_true",
        help="evaluate a copy of the model in a Ray actor while training goes on; the same results, but they arrive later",
    )
    group.add_argument(
        "--save-freq",
        type=int,
        metavar="N",
        help="save the model, and a checkpoint, every N env steps; 0 or less never (default)",
    )
    group.add_argument(
        "--keep-checkpoints",
        type=whole_number(0),
        metavar="K",
        help="newest checkpoints to keep for --resume, 0 takes none (default: %(default)s)",
    )
    group.add_argument(
        "--save-replay-buffer", action="store_true", help="save the replay buffer with the final model, where there is one"
    )
    group.add_argument("-f", "--log-folder", metavar="DIR", help="run folders go to DIR/<algo>/ (default: %(default)s)")


def _add_logging(parser: FlagParser) -> None:
    group = parser.add_argument_group("logging")
    group.add_argument("--verbose", type=int, metavar="LEVEL", help="0 quiet, 1 normal (default), 2 more")
    group.add_argument("-P", "--progress", action="store_true", help="show a progress bar in env steps")
    group.add_argument("-tb", "--tensorboard-log", metavar="DIR", help="write TensorBoard files under DIR/<env>/")
    group.add_argument(
        "--logger",
        nargs="+",
        choices=LOGGERS,
        metavar="NAME",
        help=f"where metrics go, beside the console table and metrics.csv: any of {', '.join(LOGGERS[:-1])}, or none",
    )
    group.add_argument(
        "--log-interval",
        type=int,
        metavar="N",
        help="iterations (on policy) or episodes (off policy) between logs; -1 the algorithm's own, below -1 none",
    )
    group.add_argument("--log-freq", type=int, metavar="N", help="env steps between logs, instead of --log-interval")
    group.add_argument("--profiler", choices=("simple", "advanced", "pytorch"), help="Lightning's profiler of this kind")
    group.add_argument("--track", action="store_true", help="track the run with Weights & Biases")
    group.add_argument("--wandb-project-name", metavar="NAME", help="W&B project (default: %(default)s)")
    group.add_argument("--wandb-entity", metavar="NAME", help="W&B entity, such as a team")
    group.add_argument("--wandb-group", metavar="NAME", help="W&B group")
    group.add_argument("-tags", "--wandb-tags", nargs="+", metavar="TAG", help="W&B tags, such as -tags optimized pr-123")


def add_speed(parser: FlagParser) -> None:
    """Adds the flags of device and speed."""
    group = parser.add_argument_group("device and speed")
    group.add_argument("--device", metavar="NAME", help="where the networks are: auto (default), cpu, cuda, cuda:1, ...")
    group.add_argument("--num-threads", type=int, metavar="N", help="CPU threads of the learner; 0 or less chooses them")
    group.add_argument(
        "--precision", choices=("32-true", "bf16-mixed"), help="arithmetic of the gradient steps (default: %(default)s)"
    )
    group.add_argument("--fast", action="store_true", help="speed-ups whose results are not bit for bit those without them")


def _add_devices(parser: FlagParser) -> None:
    group = parser.add_argument_group("several learners")
    group.add_argument(
        "--devices",
        type=whole_number(1),
        metavar="N",
        help="train with N learners, each on a device of its own (a GPU, or --num-threads CPUs, 1 by default), with its share "
        "of the environments, the minibatches and the replay buffer; it pays where an update takes much longer than the "
        "exchange of gradients (default: %(default)s)",
    )


def _add_trial(parser: FlagParser) -> None:
    group = parser.add_argument_group("training with what a study has found")
    group.add_argument(
        "--trial-id",
        type=int,
        metavar="ID",
        help="train with the hyperparameters of this trial of the study, counted from 0 (default: those of its best trial)",
    )
    group.add_argument(
        "--from-study",
        metavar="STUDY",
        help="train as a trial of the study in this folder did, with its seed, budget and evaluation",
    )
    group.add_argument(
        "-optimize", "--optimize-hyperparameters", action="store_true", help="search hyperparameters instead: see `tune`"
    )
