"""The flags of studies, which `tune` and `train -optimize` share."""

from __future__ import annotations

from lit_sb3_ray.cli.flags import FlagParser, positive_number, whole_number
from lit_sb3_ray.tuning.schedule.schedulers import SCHEDULERS
from lit_sb3_ray.tuning.space.samplers import SAMPLERS


def add_study(parser: FlagParser) -> None:
    """Adds the flags of studies to a parser."""
    group = parser.add_argument_group("hyperparameter studies")
    group.add_argument("--n-trials", type=whole_number(1), metavar="N", help="trials of the study (default: %(default)s)")
    group.add_argument("--max-total-trials", type=whole_number(1), metavar="N", help="the same, and goes over --n-trials")
    group.add_argument(
        "--n-jobs",
        type=whole_number(1),
        metavar="N",
        help="trials at once (default: as many as Ray has the resources for)",
    )
    group.add_argument("--max-concurrent", dest="n_jobs", type=whole_number(1), metavar="N", help="the same as --n-jobs")
    group.add_argument("--sampler", choices=SAMPLERS, help="what proposes hyperparameters (default: %(default)s)")
    group.add_argument(
        "--pruner",
        choices=SCHEDULERS,
        metavar="NAME",
        help=f"what cuts poor trials short: {', '.join(SCHEDULERS)} (default: %(default)s)",
    )
    group.add_argument("--scheduler", dest="pruner", choices=SCHEDULERS, metavar="NAME", help="the same as --pruner")
    group.add_argument(
        "--n-startup-trials", type=whole_number(0), metavar="N", help="random trials at the start (default: %(default)s)"
    )
    group.add_argument(
        "--n-evaluations",
        type=whole_number(1),
        metavar="N",
        help="evaluations a trial (default: one each 100k env steps, at least 5 with asha)",
    )
    group.add_argument(
        "--search-space", metavar="FILE|pkg.mod:function", help="what to search (default: the algorithm's own space)"
    )
    group.add_argument(
        "--objective", metavar="last|best|mean:K", help="what a trial is worth, of its evaluations (default: %(default)s)"
    )
    group.add_argument(
        "--seeds-per-trial",
        type=whole_number(1),
        metavar="K",
        help="train each trial with K seeds; its value is their mean (default: %(default)s)",
    )
    group.add_argument("--warm-start", action="store_true", help="trial 0 has the file's own hyperparameters")
    group.add_argument(
        "--cpus-per-trial", type=positive_number, metavar="X", help="CPUs of a trial's learner (default: %(default)s)"
    )
    group.add_argument(
        "--gpus-per-trial",
        type=float,
        metavar="X",
        help="1 for a GPU of its own for each trial's learner, or a fraction for a part (default: %(default)s)",
    )
    group.add_argument(
        "--max-failures",
        type=whole_number(0),
        metavar="K",
        help="how often a trial whose process was lost goes on from its last checkpoint (default: %(default)s)",
    )
    group.add_argument(
        "--checkpoint-every",
        type=float,
        metavar="S",
        help="seconds between two checkpoints of a trial, at least; 0 for one at each evaluation (default: %(default)g)",
    )
    group.add_argument(
        "--time-budget", type=positive_number, metavar="S", help="seconds after which the study ends in good order"
    )
    group.add_argument(
        "--retrain-best",
        type=whole_number(0),
        metavar="K",
        help="at the end, train the best hyperparameters with K fresh seeds and tell how they do",
    )
    group.add_argument("--storage", metavar="URL", help="Optuna storage: a URL, or a path ending in .log for a journal file")
    group.add_argument("--study-name", metavar="NAME", help="the study's name in the storage")
    group.add_argument(
        "--storage-path",
        metavar="PATH",
        help="where trials and checkpoints go; with several nodes, a folder or URL they share",
    )
    group.add_argument("--optimization-log-path", metavar="DIR", help="keep each trial's evaluations and best model under DIR")
    group.add_argument("--no-optim-plots", action="store_true", help="draw no figures of the study")
