"""Pictures into files: mp4 as the pictures come, and gif from the mp4.

What is not finished lies in a temporary folder inside the folder of the video; what is finished is renamed into place.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from types import TracebackType

import numpy as np

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.video.ffmpeg import Encoder

GIF_RATE = 10.0
"""Pictures a second of a gif, at most."""

_VIDEO, _PALETTE, _GIF = "video.mp4", "palette.png", "video.gif"
# Players want an even number of pixels in both directions.
_EVEN = "pad=ceil(iw/2)*2:ceil(ih/2)*2"


class VideoFile:
    """A video that grows picture by picture. Left without `save`, it leaves nothing behind.

    Attributes:
        pictures: How many pictures it has.
    """

    def __init__(self, folder: Path, rate: float) -> None:
        """Starts nothing yet: the first picture decides the size.

        Args:
            folder: Where the video goes; made with the first picture if need be.
            rate: Pictures a second.
        """
        self.pictures = 0
        self._folder, self._rate = folder, rate
        self._shape: tuple[int, ...] = ()
        self._undo = ExitStack()
        self._encoder: Encoder | None = None

    def __enter__(self) -> VideoFile:
        """Returns itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the encoder if it still runs, and removes the temporary folder."""
        self._undo.close()

    def add(self, picture: np.ndarray) -> None:
        """Adds a picture.

        Args:
            picture: Bytes of the shape `(height, width, 3)`; one of another size than the first is fitted into its size.

        Raises:
            ConfigError: The encoder fails, or the folder cannot be written.
        """
        if self._encoder is None:
            self._encoder = self._start(picture)
        elif picture.shape != self._shape:
            picture = _fitted(picture, self._shape)
        self._encoder.write(np.ascontiguousarray(picture).data)
        self.pictures += 1

    def save(self, name: str, gif: bool = False) -> list[Path]:
        """Finishes the video and puts it in its place, over an older one of the same name.

        Args:
            name: The file's name, without suffix.
            gif: Whether to make a gif of it too.

        Returns:
            The file, or both; none when there is no picture.

        Raises:
            ConfigError: The encoder fails, or something that is no file is there already.
        """
        if self._encoder is None:
            return []
        self._encoder.finish()
        made = [self._encoder.folder / _VIDEO]
        if gif:
            made.append(_gif(self._encoder.folder, min(self._rate, GIF_RATE)))
        with _writing(self._folder):
            return [path.replace(self._folder / f"{name}{path.suffix}") for path in made]

    def _start(self, picture: np.ndarray) -> Encoder:
        with _writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            own = self._undo.enter_context(tempfile.TemporaryDirectory(prefix=".recording-", dir=self._folder))
        self._shape = picture.shape
        size = f"{picture.shape[1]}x{picture.shape[0]}"
        words = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", _rational(self._rate), "-i", "pipe:0"]
        words += ["-vf", _EVEN, "-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart", _VIDEO]
        encoder = Encoder(Path(own), words)
        self._undo.callback(encoder.kill)
        return encoder


def check_names(folder: Path, names: Iterable[str]) -> None:
    """Checks that no folder lies where a video is to go, before anything is recorded.

    Args:
        folder: The folder of the videos.
        names: Their names, without suffixes.

    Raises:
        ConfigError: One does.
    """
    for path in (folder / f"{name}{suffix}" for name in names for suffix in (".mp4", ".gif")):
        if path.is_dir():
            raise ConfigError(f"{str(path)!r} is a folder, and a video is to be written there")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"videos cannot be written to {str(folder)!r}: {error.strerror or error}") from error


def _gif(folder: Path, rate: float) -> Path:
    """Makes a gif of a finished video; two runs, since in one all pictures would have to be kept in memory."""
    fps = f"fps={_rational(rate)}"
    # A pipe that is closed at once takes the terminal's place as the input.
    Encoder(folder, ["-i", _VIDEO, "-vf", f"{fps},palettegen", "-frames:v", "1", "-update", "1", _PALETTE]).finish()
    Encoder(folder, ["-i", _VIDEO, "-i", _PALETTE, "-filter_complex", f"[0:v]{fps}[x];[x][1:v]paletteuse", _GIF]).finish()
    return folder / _GIF


def _fitted(picture: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    from PIL import Image, ImageOps

    return np.asarray(ImageOps.pad(Image.fromarray(picture), (shape[1], shape[0])))


def _rational(rate: float) -> str:
    return str(Fraction(rate).limit_denominator(1001))
