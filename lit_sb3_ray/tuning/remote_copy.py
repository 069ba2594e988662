"""A copy of a study's folder where its trials are, so that a cluster which is taken down leaves nothing behind that counts."""

from __future__ import annotations

import logging
from pathlib import Path

from lit_sb3_ray.scale.remote_folder import is_url, one_line, open_url, url_of
from lit_sb3_ray.tuning.study_folder import file_name

logger = logging.getLogger(__name__)

# Beside the folders of the trials.
COPY = "study"


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
    from pyarrow.fs import LocalFileSystem, copy_files  # type: ignore[import-untyped]

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
