"""Recording: one model as a clip, and all models of a run as clips and one video."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

import numpy as np

from lit_sb3_ray.experiment.locate import Which
from lit_sb3_ray.experiment.playback import Episode, Player, play
from lit_sb3_ray.video.encoding import VideoFile, check_names
from lit_sb3_ray.video.labels import caption, captioned, enlarged
from lit_sb3_ray.video.models import SavedModel
from lit_sb3_ray.video.pictures import PictureTap, picture_rate

Follow = Callable[[Iterable[list[Episode]]], Iterable[list[Episode]]]
"""Passes the steps of a clip on, such as through a progress bar; it may end them early."""

TRAINING = "training"
"""Name of the video of a whole training."""


def record_clip(
    player: Player,
    n_steps: int,
    folder: Path,
    prefix: str,
    *,
    text: str = "",
    gif: bool = False,
    follow: Follow = iter,
    also: Callable[[np.ndarray], None] | None = None,
) -> list[Path]:
    """Records an agent.

    Args:
        player: The agent, in environments that were made with the render mode `rgb_array`.
        n_steps: Steps to record; the video has one picture more, of the start.
        folder: Where the video goes.
        prefix: How its name begins; `-step-0-to-step-<steps>` follows, as Stable-Baselines3 has it.
        text: What is written above each picture; nothing without it.
        gif: Whether to make a gif too.
        follow: Takes the steps as they are taken.
        also: Takes each picture too, as it is in the video.

    Returns:
        The files; none when `follow` ends the steps before the first.

    Raises:
        ConfigError: The environments give no picture, or the video cannot be encoded.
    """
    check_names(folder, [_clip_name(prefix, n_steps)])
    with VideoFile(folder, picture_rate(player.env)) as video:
        env = PictureTap(player.env, _Captioner(text, [video.add] if also is None else [video.add, also]))
        steps = play(player.model, env, n_steps, deterministic=player.deterministic, monitored=player.monitored)
        for _ in follow(steps):
            pass
        return video.save(_clip_name(prefix, video.pictures - 1), gif)


def record_training(
    models: Sequence[SavedModel],
    open_player: Callable[[Which], Player],
    n_steps: int,
    folder: Path,
    *,
    gif: bool = False,
    follow: Follow = iter,
) -> Generator[list[Path], None, None]:
    """Records several models of a run, and joins them in `training.mp4`.

    Args:
        models: The models, in the order of the video.
        open_player: Opens one of them, in environments with the render mode `rgb_array`; they are closed here.
        n_steps: Steps to record of each.
        folder: Where the videos go.
        gif: Whether to make `training.gif` too.
        follow: Takes the steps of each clip as they are taken.

    Yields:
        The files, as they are finished: a clip for each model, above its pictures what it is; at last the whole. Whoever
        stops asking before that gets no `training.mp4`.

    Raises:
        ConfigError: A model cannot be opened or recorded.
    """
    check_names(folder, [TRAINING, *(_clip_name(model.prefix, n_steps) for model in models)])
    with contextlib.ExitStack() as undo:
        whole: VideoFile | None = None
        for model in models:
            player = open_player(model.which)
            with contextlib.closing(player.env):
                if whole is None:
                    whole = undo.enter_context(VideoFile(folder, picture_rate(player.env)))
                yield record_clip(player, n_steps, folder, model.prefix, text=model.caption, follow=follow, also=whole.add)
        if whole is not None:
            yield whole.save(TRAINING, gif)


def _clip_name(prefix: str, n_steps: int) -> str:
    return f"{prefix}-step-0-to-step-{n_steps}"


class _Captioner:
    """Writes a text above pictures and hands them on."""

    def __init__(self, text: str, takers: Sequence[Callable[[np.ndarray], None]]) -> None:
        self._text, self._takers = text, takers
        self._strip: np.ndarray | None = None

    def __call__(self, picture: np.ndarray) -> None:
        if self._text:
            picture = enlarged(picture)
            if self._strip is None or self._strip.shape[1] != picture.shape[1]:
                self._strip = caption(self._text, picture.shape[1])
            picture = captioned(picture, self._strip)
        for take in self._takers:
            take(picture)
