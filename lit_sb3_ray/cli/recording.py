"""What the recording commands share: their flags, what is checked before anything is opened, and how steps are followed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.output import with_bar
from lit_sb3_ray.cli.playing import check_seed
from lit_sb3_ray.cli.stopping import StopRequest, until_stopped
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.playback import Episode

RENDER_MODE = "rgb_array"


def add_recording(parser: FlagParser, gif: str) -> None:
    """Adds the flags that say what becomes of a recording.

    Args:
        parser: The command's parser.
        gif: What `--gif` does, for its help.
    """
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "-o",
        "--output-folder",
        metavar="DIR",
        help="folder of the videos (default: videos in the run folder); a video of the same name is replaced, nothing else",
    )
    group.add_argument("-g", "--gif", action="store_true", help=gif)
    group.add_argument(
        "--verbose", type=int, default=1, metavar="LEVEL", help="0 nothing, 1 what is loaded and saved (default)"
    )
    group.add_argument("-P", "--progress", action="store_true", help="show a progress bar")


def check_recording(args: argparse.Namespace) -> None:
    """Checks what can be checked before a run is looked for.

    Args:
        args: The parsed flags.

    Raises:
        ConfigError: A flag's value is wrong, or a package is missing.
    """
    from lit_sb3_ray.video.ffmpeg import find_ffmpeg

    check_seed(args.seed)
    mode = (args.env_kwargs or {}).get("render_mode", RENDER_MODE)
    if mode != RENDER_MODE:
        raise ConfigError(f"--env-kwargs render_mode:{mode}: a video is recorded with render_mode {RENDER_MODE}, leave it out")
    find_ffmpeg()


def video_folder(args: argparse.Namespace, run_folder: Path) -> Path:
    """Settles where the videos go.

    Args:
        args: The parsed flags.
        run_folder: The run folder.

    Returns:
        The folder; it need not be there yet.

    Raises:
        ConfigError: It cannot be written.
    """
    from lit_sb3_ray.experiment.run_folder import check_writable

    folder = Path(args.output_folder) if args.output_folder else run_folder / "videos"
    check_writable(folder, "--output-folder")
    return folder


def follower(args: argparse.Namespace, request: StopRequest) -> Callable[[Iterable[list[Episode]]], Iterable[list[Episode]]]:
    """Builds what the steps of a clip go through: a bar if asked for, and the end when a signal comes.

    Args:
        args: The parsed flags.
        request: Where signals are noted.

    Returns:
        A function of the steps that returns them.
    """

    def follow(steps: Iterable[list[Episode]]) -> Iterable[list[Episode]]:
        return until_stopped(with_bar(steps, args.n_timesteps) if args.progress else steps, request)

    return follow


def tell_saved(args: argparse.Namespace, files: Iterable[Path]) -> None:
    """Prints the files that were saved, unless nothing is to be told."""
    for file in files if args.verbose > 0 else ():
        print(f"Saved {file}", flush=True)
