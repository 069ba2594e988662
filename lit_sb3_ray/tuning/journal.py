"""Optuna's journal files: whether one is whole, and writing after a line that a killed process has left unfinished.

Optuna's own reader takes a journal that has lost lines for a shorter study, and its writer appends to an unfinished last line,
after which nobody can read the file any more.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)

# Optuna's numbers of what a line does; of all others it is enough to know which study or trial they speak of.
CREATE_STUDY, DELETE_STUDY, CREATE_TRIAL = 0, 1, 4
_CHUNK = 65536


class Journal(JournalFileBackend):
    """A journal file that is written to only where its last line is whole."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lock_obj=_MendingLock(path))


def open_journal(path: str) -> JournalStorage:
    """Opens a journal, and makes it if it is not there yet.

    Args:
        path: The file; its folder is there.

    Raises:
        ConfigError: A line is damaged, or lines are missing; the message says which. An unfinished last line is none of that:
            a process was killed as it wrote it.
        OSError: It cannot be read or made.
    """
    if os.path.exists(path):
        check_journal(path)
    return JournalStorage(Journal(path))


def check_journal(path: str) -> None:
    """Reads a journal through and refuses one that is not whole; see `open_journal`."""
    with open(path, "rb") as file:
        content = _Content()
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                logger.info("The last line of %s is unfinished, as a killed process leaves it; it counts for nothing", path)
                return
            fault = content.take(line)
            if fault is not None:
                told = f"line {number} {fault}; before it are {content.trials} trials"
                raise ConfigError(f"storage {path!r} cannot be opened: {told}. Put a whole copy of the file in its place")


class _Content:
    """What the lines of a journal have made so far.

    Attributes:
        trials: How many trials, of all studies together.
    """

    def __init__(self) -> None:
        self.trials = 0
        self._studies = 0
        self._names: dict[int, str] = {}

    def take(self, line: bytes) -> str | None:
        """Takes a line in; gives what is wrong with it, if something is."""
        try:
            entry = json.loads(line)
        except ValueError:  # Bytes that are no UTF-8 are one, too.
            return "is damaged"
        if not isinstance(entry, dict) or not isinstance(entry.get("op_code"), int):
            return "is no entry of a journal"
        study, trial = entry.get("study_id"), entry.get("trial_id")
        if isinstance(trial, int) and trial >= self.trials:
            return f"speaks of trial {trial}, which no line has begun: lines are missing"
        if isinstance(study, int) and study >= self._studies:
            return f"speaks of study {study}, which no line has begun: lines are missing"
        self._make(entry["op_code"], entry, study)
        return None

    def _make(self, operation: int, entry: dict[str, Any], study: Any) -> None:
        name = entry.get("study_name")
        if operation == CREATE_STUDY and isinstance(name, str) and name not in self._names.values():
            self._names[self._studies] = name
            self._studies += 1
        elif operation == DELETE_STUDY:
            self._names.pop(study, None)
        elif operation == CREATE_TRIAL and study in self._names:
            self.trials += 1


class _MendingLock(JournalFileSymlinkLock):
    """Cuts an unfinished last line off as soon as nobody else can be writing it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._journal = path

    def acquire(self) -> bool:
        """Takes the lock, and cuts."""
        taken = super().acquire()
        try:
            _cut_unfinished(self._journal)
        except OSError:
            self.release()
            raise
        return taken


def _cut_unfinished(path: str) -> None:
    with open(path, "rb+") as file:
        end = file.seek(0, os.SEEK_END)
        whole = _end_of_last_line(_chunks_backwards(file, end), end)
        if whole < end:
            logger.warning("The unfinished last line of %s is cut off", path)
            file.truncate(whole)


def _end_of_last_line(chunks: Iterable[bytes], end: int) -> int:
    """Counts the bytes up to the last line break, given a file's chunks from behind."""
    for chunk in chunks:
        found = chunk.rfind(b"\n")
        if found >= 0:
            return end - len(chunk) + found + 1
        end -= len(chunk)
    return 0


def _chunks_backwards(file: Any, end: int) -> Iterator[bytes]:
    """Reads a file from behind; the last byte alone is enough in most cases."""
    size = 1
    while end > 0:
        begin = max(0, end - size)
        file.seek(begin)
        yield file.read(end - begin)
        end, size = begin, _CHUNK
