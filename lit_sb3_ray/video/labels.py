"""Captions: a strip with a line of text above each picture, so that nothing of the picture is covered."""

from __future__ import annotations

import numpy as np

MIN_WIDTH = 240
"""Pixels that a picture must be wide for a caption; narrower ones are enlarged by a whole factor."""

BACKGROUND = (24, 24, 24)
FOREGROUND = (255, 255, 255)

_SMALLEST, _LARGEST, _MARGIN = 8, 48, 8


def enlarged(picture: np.ndarray) -> np.ndarray:
    """Enlarges a picture that is too narrow for a caption.

    Args:
        picture: Bytes of the shape `(height, width, 3)`.

    Returns:
        The picture, each pixel of it repeated so often in both directions that it is at least `MIN_WIDTH` wide.
    """
    factor = -(-MIN_WIDTH // picture.shape[1])
    return picture if factor == 1 else picture.repeat(factor, axis=0).repeat(factor, axis=1)


def caption(text: str, width: int) -> np.ndarray:
    """Writes a line in the middle of a strip.

    Args:
        text: The line.
        width: The strip's width in pixels; the letters are as large as it allows.

    Returns:
        Bytes of the shape `(height, width, 3)`.
    """
    from PIL import Image, ImageDraw, ImageFont

    size = min(max(width // 25, 12), _LARGEST)
    font = ImageFont.load_default(size)
    while size > _SMALLEST and font.getlength(text) > width - 2 * _MARGIN:
        size -= 1
        font = ImageFont.load_default(size)
    strip = Image.new("RGB", (width, 2 * size), BACKGROUND)
    ImageDraw.Draw(strip).text((width / 2, size), text, fill=FOREGROUND, font=font, anchor="mm")
    return np.asarray(strip)


def captioned(picture: np.ndarray, strip: np.ndarray) -> np.ndarray:
    """Puts a strip above a picture.

    Args:
        picture: The picture, already `enlarged`.
        strip: A `caption` of the picture's width.

    Returns:
        Both, bytes of the shape `(height, width, 3)`.
    """
    return np.concatenate([strip, picture])
