"""Reads videos back, picture by picture."""

from __future__ import annotations

from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image, ImageSequence

from lit_sb3_ray.video.labels import caption


def read_video(path):
    """The pictures of an mp4, shape `(pictures, height, width, 3)`, and how many of them make up a second."""
    frames = imageio_ffmpeg.read_frames(str(path), output_params=["-fps_mode", "passthrough"])
    about = next(frames)
    width, height = about["size"]
    pictures = [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames]
    return np.stack(pictures), about["fps"]


def read_gif(path):
    """The pictures of a gif, and how many of them make up a second."""
    with Image.open(path) as gif:
        seconds = gif.info["duration"] / 1000
        return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(gif)]), 1 / seconds


def nearest_caption(picture, texts):
    """Which of several texts stands above a picture, once it was encoded; None where none of them nearly does."""
    strips = {text: caption(text, picture.shape[1]) for text in texts}
    off = {text: np.abs(picture[: len(strip)].astype(int) - strip).mean() for text, strip in strips.items()}
    best = min(off, key=off.get)
    return best if off[best] < 8 else None


def names(folder):
    """The names of all that lies in a folder, hidden or not."""
    return sorted(path.name for path in Path(folder).iterdir())
