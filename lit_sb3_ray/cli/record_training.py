"""`lit-sb3-ray record-training`: all models of a run, one after the other, in one video."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from pathlib import Path

from lit_sb3_ray.cli.display import offscreen
from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.play_flags import add_play, add_run
from lit_sb3_ray.cli.playing import open_player
from lit_sb3_ray.cli.recording import RENDER_MODE, add_recording, check_recording, follower, tell_saved, video_folder
from lit_sb3_ray.cli.stopping import stop_requests


def build_parser() -> FlagParser:
    """Builds the parser of `record-training`: the 10 flags of rl_zoo3, and those that `enjoy` has besides."""
    parser = FlagParser(
        prog="lit-sb3-ray record-training",
        description="Record the models of a run, all that were saved on the way, the best and the final one, each labelled "
        "with its env steps, and join them in training.mp4 in the order of the steps. It needs no display.",
    )
    add_run(parser)
    add_play(parser)
    add_recording(parser, "make training.gif too")
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `record-training`.

    Returns:
        0; 130 or 143 when a signal ended it early: the clips until then are saved, and not joined.

    Raises:
        ConfigError: Bad input, no model, an environment that cannot be recorded, or a missing package.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(args.verbose)
    check_recording(args)

    from lit_sb3_ray.experiment.locate import find_run
    from lit_sb3_ray.video.models import saved_models

    run_folder = find_run(Path(args.folder), args.algo, args.env, args.exp_id)
    models = saved_models(run_folder, args.algo, args.env)
    folder = video_folder(args, run_folder)

    from lit_sb3_ray.video.recording import record_training

    with offscreen(), stop_requests() as request:
        recorded = record_training(
            models,
            functools.partial(open_player, args, run_folder, render_mode=RENDER_MODE),
            args.n_timesteps,
            folder,
            gif=args.gif,
            follow=follower(args, request),
        )
        with contextlib.closing(recorded):
            for files in recorded:
                tell_saved(args, files)
                if request.signum:
                    break
    return request.code
