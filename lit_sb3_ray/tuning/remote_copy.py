"""A copy of a study's folder where its trials are, so that a cluster which is taken down leaves nothing behind that counts."""

from __future__ import annotations

import logging
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.remote_folder import is_url, one_line, open_url, url_of
from lit_sb3_ray.tuning.study_folder import SETTINGS, file_name

logger = logging.getLogger(__name__)

# Beside the folders of the trials.
COPY = "study"


def check_no_copy(storage_path: str, study_name: str) -> None:
    """Refuses to begin a study where another one of that name has left its copy, which may be all that is left of it.

    Args:
        storage_path: See `keep_copy`.
        study_name: The new study's name.

    Raises:
        ConfigError: There is such a copy, or the URL cannot be looked at.
    """
    if not is_url(storage_path):
        return
    from pyarrow.fs import FileType  # type: ignore[import-untyped]

    system, root = open_url(storage_path, "--storage-path")
    target = f"{root}/{file_name(study_name)}/{COPY}"
    try:
        found = system.get_file_info(f"{target}/{SETTINGS}").type != FileType.NotFound
    except OSError as error:
        raise ConfigError(f"--storage-path {storage_path!r} cannot be read: {one_line(error)}") from error
    if found:
        where = url_of(target, root, storage_path)
        raise ConfigError(f"{where} is the copy of an earlier study {study_name!r}: give this one another --study-name")


def keep_copy(folder: Path, storage_path: str, study_name: str) -> str | None:
    """Copies a study's folder, with its journal and its reports, to the URL that its trials are kept at.

    Args:
        folder: The study's folder.
        storage_path: Where trials are kept; only a URL is copied to.
        study_name: The study's name, which its trials lie under.

    Returns:
        The copy's URL; None when there is none. That it could not be made is a warning: the study itself is whole.
    """
    if not is_url(storage_path):
        return None
    from pyarrow.fs import LocalFileSystem, copy_files

    system, root = open_url(storage_path, "--storage-path")
    target = f"{root}/{file_name(study_name)}/{COPY}"
    url = url_of(target, root, storage_path)
    try:
        system.create_dir(target, recursive=True)
        copy_files(str(folder), target, source_filesystem=LocalFileSystem(), destination_filesystem=system)
    except OSError as error:
        logger.warning("The study's folder could not be copied to %s: %s", url, one_line(error))
        return None
    logger.info("The study's folder is copied to %s", url)
    return url
