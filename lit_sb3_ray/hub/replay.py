"""The video beside the model card, where one can be made."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.playback import Player
from lit_sb3_ray.hub.names import REPLAY

logger = logging.getLogger(__name__)


def record_replay(open_player: Callable[[], Player], n_steps: int, folder: Path) -> bool:
    """Records an agent, or tells why that cannot be done.

    Args:
        open_player: Opens it in environments with the render mode `rgb_array`, which are closed here.
        n_steps: Steps to record.
        folder: Where `replay.mp4` goes.

    Returns:
        Whether there is one.
    """
    from lit_sb3_ray.video.ffmpeg import find_ffmpeg
    from lit_sb3_ray.video.recording import record_clip

    try:
        find_ffmpeg()
        player = open_player()
        with contextlib.closing(player.env), tempfile.TemporaryDirectory(dir=folder.parent) as place:
            files = record_clip(player, n_steps, Path(place), "replay")
            for file in files[:1]:
                file.replace(folder / REPLAY)
    except ConfigError as error:
        logger.warning("No replay video: %s", error)
        return False
    return bool(files)
