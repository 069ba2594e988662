"""What an earlier report says of how far its study had come: a study that is shorter now has lost something."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.reports.record import Extent, StudyRecord

_HEAD = 4096
_NOTE = re.compile(rb'<meta name="study-extent" content="(\d+) (\d+) ([0-9a-f]+)">')


def extent_note(study: StudyRecord) -> str:
    """Writes how far a study has come, for the head of a page."""
    return f'<meta name="study-extent" content="{study.extent.rows} {study.extent.ended} {_key(study.name)}">'


def check_not_shorter(study: StudyRecord, page: Path) -> None:
    """Refuses a study that is shorter than the report of it that is there.

    Args:
        study: The study.
        page: The earlier report; there may be none, or one of another study, which says nothing.

    Raises:
        ConfigError: Rows are gone. The report is then the only trace of them.
    """
    known = _noted(page, study.name)
    now = study.extent
    if known is not None and (now.rows < known.rows or now.ended < known.ended):
        raise ConfigError(
            f"study {study.name!r} has {_told(now)}, and its report {page} tells of {_told(known)}: its storage has been cut "
            "or replaced; put it back, or move the report away"
        )


def _noted(page: Path, name: str) -> Extent | None:
    try:
        with page.open("rb") as file:
            found = _NOTE.search(file.read(_HEAD))
    except OSError:
        return None
    if found is None or found[3].decode() != _key(name):
        return None
    return Extent(int(found[1]), int(found[2]))


def _key(name: str) -> str:
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]


def _told(extent: Extent) -> str:
    return f"{extent.ended} trials that are over of {extent.rows}"
