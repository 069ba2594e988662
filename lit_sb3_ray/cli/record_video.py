"""`lit-sb3-ray record-video`: a trained agent as mp4, and as gif."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from lit_sb3_ray.cli.display import offscreen
from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.play_flags import add_choice, add_play, add_run
from lit_sb3_ray.cli.playing import open_player
from lit_sb3_ray.cli.pretrained import choose_or_download
from lit_sb3_ray.cli.recording import RENDER_MODE, add_recording, check_recording, follower, tell_saved, video_folder
from lit_sb3_ray.cli.stopping import stop_requests


def build_parser() -> FlagParser:
    """Builds the parser of `record-video`: the 16 flags of rl_zoo3, and those that `enjoy` has besides."""
    parser = FlagParser(
        prog="lit-sb3-ray record-video",
        description="Record a trained agent, from a run of this package or of rl_zoo3, as mp4. It needs no display.",
    )
    add_run(parser)
    add_choice(parser)
    add_play(parser)
    add_recording(parser, "make a gif of it too")
    parser.add_argument("--label", action="store_true", help="write above the pictures which model it is, and its env steps")
    parser.add_argument("--no-render", action="store_true", help="accepted for rl_zoo3's sake: nothing is shown on a screen")
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `record-video`.

    Returns:
        0; 130 or 143 when a signal ended it early, with what was recorded until then saved all the same.

    Raises:
        ConfigError: Bad input, no such model, an environment that cannot be recorded, or a missing package.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(args.verbose)
    check_recording(args)
    run_folder, which = choose_or_download(args)

    from lit_sb3_ray.video.models import saved_model

    model = saved_model(run_folder, args.algo, args.env, which)
    folder = video_folder(args, run_folder)
    with contextlib.ExitStack() as undo:
        undo.enter_context(offscreen())
        player = open_player(args, run_folder, which, render_mode=RENDER_MODE)
        undo.callback(player.env.close)

        from lit_sb3_ray.video.recording import record_clip

        request = undo.enter_context(stop_requests())
        files = record_clip(
            player,
            args.n_timesteps,
            folder,
            model.prefix,
            text=model.caption if args.label else "",
            gif=args.gif,
            follow=follower(args, request),
        )
        tell_saved(args, files)
    return request.code
