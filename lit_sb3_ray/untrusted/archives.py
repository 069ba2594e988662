"""Zip archives from strangers: looked over before anything is taken out of them."""

from __future__ import annotations

import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from lit_sb3_ray.errors import ConfigError

MAX_FILES = 10_000
"""Files in an archive."""
MAX_BYTES = 8 * 2**30
"""Bytes of all of them together, unpacked."""
MAX_RATIO = 200
"""How many times its packed size a file may have unpacked, once it is above `FREE_BYTES`."""
FREE_BYTES = 16 * 2**20

# What Python's reader, and the decompressors behind it, raise for bytes that are none of theirs.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError, OverflowError),
    UnicodeDecodeError,
)


@contextmanager
def open_archive(path: str | Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Opens an archive that was looked over.

    Args:
        path: The archive, or its open file.

    Yields:
        It, open for reading.

    Raises:
        ConfigError: It is none, or damaged; a name in it leads out of it; or it holds too much. Nothing was unpacked then.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(archive, str(path))
            yield archive
    except _DAMAGED as error:
        raise ConfigError(f"{path} is no zip archive, or a damaged one: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error


def check_archive(archive: zipfile.ZipFile, where: str) -> None:
    """Looks an archive over by its table of contents.

    Args:
        archive: The archive.
        where: Its name, for messages.

    Raises:
        ConfigError: See `open_archive`.
    """
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    for entry in entries:
        if leads_out(entry.filename) or stat.S_ISLNK(entry.external_attr >> 16):
            raise ConfigError(f"{where} was refused: {entry.filename!r} in it leads out of the folder it would be unpacked to")
        if entry.flag_bits & 1:
            raise ConfigError(f"{where} was refused: {entry.filename!r} in it is encrypted")
        if entry.file_size > max(FREE_BYTES, MAX_RATIO * entry.compress_size):
            raise ConfigError(f"{where} was refused: {entry.filename!r} in it would unpack to {entry.file_size:,} bytes")
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_FILES or total > MAX_BYTES:
        raise ConfigError(f"{where} was refused: it would unpack to {len(entries):,} files of {total:,} bytes")
    if len(set(names)) < len(names):
        raise ConfigError(f"{where} was refused: it holds one name twice")


def leads_out(name: str) -> bool:
    """Tells whether a name in an archive leads out of the folder that the archive is unpacked to, on any system."""
    windows = PureWindowsPath(name)
    parts = {*PurePosixPath(name).parts, *windows.parts}
    return not name or ".." in parts or name.startswith("/") or bool(windows.drive or windows.root) or "\0" in name


def extract(path: Path, folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Unpacks some of an archive's files straight into a folder.

    Args:
        path: The archive.
        folder: The folder, which exists.
        wanted: Whether a file of that name is unpacked; those in sub-folders never are.

    Returns:
        The files.

    Raises:
        ConfigError: See `open_archive`.
    """
    with open_archive(path) as archive:
        entries = [entry for entry in archive.infolist() if _is_file(entry) and wanted(entry.filename)]
        return [Path(archive.extract(entry, folder)) for entry in entries]


def _is_file(entry: zipfile.ZipInfo) -> bool:
    return not entry.is_dir() and PurePosixPath(entry.filename).name == entry.filename
