"""A study's folder: where its trials, its storage and its reports lie.

<log folder>/<algo>/<E>_study_<k>/
  study.yml      storage and name of the study, and the settings it was begun with
  study.log      Optuna's journal, unless another storage was asked for
  output/        a folder a trial: what it has printed (output.log) and what SB3's logger has dumped (metrics.csv)
  trials/        Ray Tune's folders: one a trial, with its TensorBoard run and its checkpoints
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.run_folder import write_yaml
from lit_sb3_ray.tuning.storage import SQLITE

SETTINGS, JOURNAL, OUTPUT, TRIALS = "study.yml", "study.log", "output", "trials"


@dataclass(frozen=True)
class StudyFolder:
    """The paths of one study.

    Attributes:
        path: The folder, absolute.
    """

    path: Path

    @property
    def settings(self) -> Path:
        """What the study is."""
        return self.path / SETTINGS

    @property
    def journal(self) -> Path:
        """Its storage, unless another was asked for."""
        return self.path / JOURNAL


def claim_study(log_folder: str | Path, algo: str, env_id: str) -> StudyFolder:
    """Makes the next free study folder; two starts at the same moment get two numbers.

    Args:
        log_folder: Root of all runs and studies.
        algo: The algorithm's name.
        env_id: The environment's id.

    Raises:
        ConfigError: The folder cannot be written.
    """
    home = Path(log_folder).absolute() / algo_folder_name(algo)
    try:
        home.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            path = home / f"{env_folder_name(env_id)}_study_{number}"
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return StudyFolder(path)
            number += 1
    except OSError as error:
        raise ConfigError(f"a study folder cannot be made in {str(home)!r}: {error.strerror or error}") from error


def remove_study(folder: StudyFolder) -> None:
    """Removes the folder of a study that could not be begun, if nothing is in it."""
    with contextlib.suppress(OSError):
        folder.path.rmdir()


def file_name(study_name: str) -> str:
    """Makes the name of a file or a folder of a study's name, in which anything may stand."""
    return re.sub(r"[^\w.+-]", "-", study_name, flags=re.ASCII)[:100].lstrip(".") or "study"


def describe_study(folder: StudyFolder, storage: str, name: str, arguments: dict[str, Any]) -> None:
    """Writes `study.yml`; a storage inside the folder is noted relative to it, so that the folder may be moved."""
    folder.path.mkdir(parents=True, exist_ok=True)
    where = JOURNAL if os.path.abspath(storage) == os.path.abspath(folder.journal) else _from_anywhere(storage)
    write_yaml(folder.settings, {"storage": where, "name": name, "arguments": from_anywhere(arguments)})


def from_anywhere(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the paths among a study's settings absolute, so that they mean the same from any working directory.

    Args:
        arguments: Settings by the names of `train`; a search space and a configuration may be modules, which stay as they are.
    """
    files = {"conf_file": (".yml", ".yaml", ".py"), "search_space": (".yml", ".yaml")}
    found = dict(arguments)
    for name in ("conf_file", "log_folder", "optimization_log_path", "search_space", "storage_path"):
        value = found.get(name)
        if isinstance(value, str) and value and "://" not in value and value.endswith(files.get(name, "")):
            found[name] = os.path.abspath(value)
    return found


def _from_anywhere(storage: str) -> str:
    """A storage such that it is found from any working directory: a file's path made absolute, any other as it is."""
    if storage.startswith(SQLITE):
        return SQLITE + os.path.abspath(storage.removeprefix(SQLITE))
    return storage if "://" in storage else os.path.abspath(storage)


def open_study_folder(path: str | Path) -> tuple[StudyFolder, str, str, dict[str, Any]]:
    """Opens a study's folder.

    Args:
        path: The folder.

    Returns:
        The folder, its storage, the study's name in it, and the settings it was begun with.

    Raises:
        ConfigError: It is none.
    """
    folder = StudyFolder(Path(os.path.abspath(path)))
    if not folder.settings.is_file():
        raise ConfigError(f"{str(path)!r} is no study's folder: it has no {SETTINGS}")
    storage, name, arguments = read_study(folder.settings)
    if name is None:
        raise ConfigError(f"{folder.settings} names no study")
    return folder, storage, name, arguments


def folder_beside(storage: str, name: str) -> StudyFolder | None:
    """Finds the folder of a study that has its own journal in it.

    Args:
        storage: The study's storage.
        name: The study's name.

    Returns:
        The folder; None where the storage is another, or lies in no folder of that study.
    """
    if "://" in storage:
        return None
    journal = os.path.abspath(storage)
    folder = StudyFolder(Path(journal).parent)
    if not folder.settings.is_file():
        return None
    return folder if read_study(folder.settings)[:2] == (journal, name) else None


def read_study(file: Path) -> tuple[str, str | None, dict[str, Any]]:
    """Reads a `study.yml`; paths in it are relative to its folder.

    Args:
        file: The file.

    Returns:
        The study's storage, its name in it if the file says it, and the settings it was begun with.

    Raises:
        ConfigError: It names no storage.
    """
    content = read_yaml(file, run_file=True)
    storage = content.get("storage") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(storage, str):
        raise ConfigError(f"{file} names no storage: the study was kept in memory, or this is another file")
    name, home = content.get("name"), file.parent
    if storage.startswith(SQLITE):
        storage = SQLITE + str(home / storage.removeprefix(SQLITE))
    elif "://" not in storage:
        storage = str(home / storage)
    return storage, None if name is None else str(name), dict(content.get("arguments") or {})
