"""Finds a study by what a user has at hand: its folder, its storage, or a storage and a name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.tuning.storage import DATABASES, JOURNAL, SQLITE, load_study
from lit_sb3_ray.tuning.study_folder import SETTINGS, read_study

if TYPE_CHECKING:
    from optuna import Study

_SHOWN = 6


@dataclass(frozen=True)
class FoundStudy:
    """A study and where it was found.

    Attributes:
        study: The study.
        folder: Its folder; None when it was named by its storage.
    """

    study: Study
    folder: Path | None


def find_study(where: str | None, storage: str | None = None, name: str | None = None) -> Study:
    """Finds a study; see `locate_study`."""
    return locate_study(where, storage, name).study


def locate_study(where: str | None, storage: str | None = None, name: str | None = None) -> FoundStudy:
    """Finds a study and its folder.

    Args:
        where: A study's folder, its `study.yml`, a journal file (`.log`) or a storage's URL; None when `storage` is given.
        storage: A journal file or a URL, instead of `where`.
        name: The study's name in the storage; None when `study.yml` says it, or the storage has one study.

    Raises:
        ConfigError: There is no such study, or several may be meant.
    """
    if (where is None) == (storage is None):
        raise ConfigError("name the study either by its folder or by --storage (and --study-name)")
    if storage is not None:
        return FoundStudy(load_study(storage, name), None)
    assert where is not None
    if where.endswith(JOURNAL) or "://" in where:
        return FoundStudy(load_study(where, name), None)
    path = Path(where)
    file = path / SETTINGS if path.is_dir() else path
    if not file.is_file():
        raise _not_there(path)
    if file.name != SETTINGS:
        hint = f"; is it {SQLITE}{where}?" if file.suffix in DATABASES else ""
        raise ConfigError(f"{where!r} is no study: a folder with {SETTINGS}, a journal (.log) or a storage's URL is{hint}")
    written, called, _ = read_study(file)
    return FoundStudy(load_study(written, name or called), file.parent)


def _not_there(path: Path) -> ConfigError:
    """The error for a path without a study, with the studies near it."""
    if path.is_dir():
        inside = sorted(str(found.parent) for found in path.glob(f"**/{SETTINGS}"))
        if not inside:
            return ConfigError(f"{str(path)!r} is no study's folder: it has no {SETTINGS}, nor has a folder in it")
        more = f" and {len(inside) - _SHOWN} more" if len(inside) > _SHOWN else ""
        return ConfigError(f"{str(path)!r} is no study's folder; studies in it are {', '.join(inside[:_SHOWN])}{more}")
    beside = [folder.name for folder in path.parent.iterdir() if folder.is_dir()] if path.parent.is_dir() else []
    if not beside:
        return ConfigError(f"there is no study {str(path)!r}: no such folder, and none beside it")
    return unknown("study", path.name, beside, f"in {str(path.parent)!r}")
