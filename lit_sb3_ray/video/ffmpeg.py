"""The ffmpeg that imageio-ffmpeg brings along, run in a folder with file names of its own; nothing passes through a shell."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lit_sb3_ray.config.problems import missing_package
from lit_sb3_ray.errors import ConfigError

LOG = "ffmpeg.log"


def find_ffmpeg() -> str:
    """Finds the encoder, and whatever else a video needs.

    Returns:
        The path of the ffmpeg program.

    Raises:
        ConfigError: A package is missing (the extra is named), or there is no ffmpeg for this machine.
    """
    for package in ("imageio_ffmpeg", "PIL"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise missing_package(package, "recording a video") from error
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except RuntimeError as error:
        raise ConfigError(f"recording a video needs ffmpeg: {error}") from error


class Encoder:
    """One run of ffmpeg, which reads what is written to it.

    Attributes:
        folder: Where it runs.
    """

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        """Starts it.

        Args:
            folder: Where it runs, and keeps its log.
            words: Its arguments.

        Raises:
            ConfigError: See `find_ffmpeg`.
        """
        self.folder = folder
        self._log = folder / LOG
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [find_ffmpeg(), "-y", "-loglevel", "error", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=folder,
                # Ctrl-C is for this process alone, which ends the video in good order.
                process_group=0,
            )

    def write(self, content: memoryview) -> None:
        """Sends it something.

        Args:
            content: The bytes.

        Raises:
            ConfigError: It has ended; the line tells what it said.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(content)
        except OSError as error:
            self.kill()
            raise self._failed() from error

    def finish(self) -> None:
        """Tells it that there is no more, and waits for its end.

        Raises:
            ConfigError: It fails; the line tells what it said.
        """
        try:
            self._process.communicate()
        finally:
            self.kill()
        if self._process.returncode != 0:
            raise self._failed()

    def kill(self) -> None:
        """Ends it at once, if it still runs."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            # Its end of the pipe is gone, and with it the use of what may still be in our buffer.
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _failed(self) -> ConfigError:
        said = self._log.read_text(errors="replace").strip().splitlines()
        return ConfigError(f"the video cannot be encoded: ffmpeg {f'says {said[-1]!r}' if said else 'was ended'}")
