"""Folders that are named by a URL: `s3://`, `gs://` and whatever else Arrow has a file system for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem  # type: ignore[import-untyped]


def is_url(path: str) -> bool:
    """Whether a path names a folder of another file system."""
    return "://" in path


def open_url(url: str, flag: str) -> tuple[FileSystem, str]:
    """Opens the file system of a URL; that it can be reached shows only when it is used.

    Args:
        url: Such as `s3://bucket/folder?region=eu-west-1`; what a file system must know stands behind the question mark.
        flag: The flag that has named it, for the message.

    Returns:
        The file system, and the path in it.

    Raises:
        ConfigError: Arrow has no file system for it.
    """
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow.fs import FileSystem

    try:
        system, path = FileSystem.from_uri(url)
        if not path.strip("/"):
            raise ValueError("it names no folder")
    # It raises whatever the file system finds wrong with the URL, a ValueError or an OSError among it.
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise ConfigError(
            f"{flag} {url!r} cannot be used: {one_line(error)}; s3://bucket/path, gs://bucket/path, hdfs:// and file:// can"
        ) from error
    return system, path.rstrip("/")


def url_of(path: str, root: str, root_url: str) -> str:
    """Writes a path of a file system as a URL.

    Args:
        path: The path, in or below `root`.
        root: A folder of the same file system.
        root_url: That folder's URL; what stands behind its question mark is kept.
    """
    head, mark, options = root_url.partition("?")
    return f"{head.rstrip('/')}{path.removeprefix(root)}{mark}{options}"


def one_line(error: BaseException) -> str:
    """An error in one line."""
    return " ".join(str(error).split()) or type(error).__name__
