"""Episodes of training: the monitor files of a run, this package's or rl_zoo3's, put in the order the episodes ended.

A file's first line is `#` and a JSON mapping with `t_start`, seconds since 1970; the second names the columns, at least `r`
(return), `l` (length) and `t` (seconds since `t_start`); one row an episode follows.
"""

from __future__ import annotations

import csv
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]

_NEEDED = ("r", "l", "t")
_SUCCESS = "is_success"
_TRUTHS = {"True": 1.0, "False": 0.0}


@dataclass(frozen=True)
class Episodes:
    """The episodes of a run in the order they ended, over all of its environments.

    Attributes:
        returns: Return of each.
        lengths: Env steps of each.
        seconds: When each ended, from the start of the first file.
        successes: 1 or 0 each; None where the environment tells no success.
    """

    returns: Array
    lengths: Array
    seconds: Array
    successes: Array | None

    def __len__(self) -> int:
        return len(self.returns)


@dataclass(frozen=True)
class _File:
    start: float
    columns: tuple[str, ...]
    rows: Array


def read_episodes(run: Path) -> Episodes:
    """Reads the monitor files of a run.

    What is damaged is told by a warning; the rows before it, and the other files, are read all the same.

    Args:
        run: The run folder.

    Returns:
        The episodes; there is at least one.

    Raises:
        ConfigError: There is no monitor file, or none holds an episode.
    """
    paths = sorted(run.glob("*monitor.csv"))
    if not paths:
        raise ConfigError(f"{run} has no monitor file (*.monitor.csv)")
    files, problems = [], []
    for path in paths:
        try:
            files.append(_read(path))
        except ConfigError as error:
            problems.append(error)
    if problems and not any(len(file.rows) for file in files):
        raise problems[0]
    for problem in problems:
        logger.warning("%s: left out", problem)
    if not any(len(file.rows) for file in files):
        raise ConfigError(f"{run} has no finished episode in its monitor files")
    first = min(file.start for file in files)
    files = [file for file in files if len(file.rows)]
    seconds = np.concatenate([file.rows[:, 2] + (file.start - first) for file in files])
    order = np.argsort(seconds, kind="stable")
    returns, lengths = (np.concatenate([file.rows[:, index] for file in files])[order] for index in range(2))
    told = all(_SUCCESS in file.columns for file in files)
    successes = np.concatenate([file.rows[:, 3] for file in files])[order] if told else None
    return Episodes(returns, lengths, seconds[order], successes)


def _read(path: Path) -> _File:
    """Reads one file as far as it is sound.

    Raises:
        ConfigError: Not even its first lines are.
    """
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            start, columns = _head(file)
            rows = _rows(file, columns, path)
    except (OSError, ValueError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path} is damaged: {reason}") from error
    width = len(_NEEDED) + (_SUCCESS in columns)
    return _File(start, columns, np.array(rows, dtype=np.float64).reshape(-1, width))


def _head(file: IO[str]) -> tuple[float, tuple[str, ...]]:
    """The start and the columns.

    Raises:
        ValueError: These are not a monitor file's first lines.
    """
    first = file.readline()
    if not first.strip():
        raise ValueError("it is empty")
    try:
        start = float(json.loads(first.removeprefix("#"))["t_start"])
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ValueError("its first line is not that of a monitor file") from None
    if not math.isfinite(start):
        raise ValueError(f"its t_start is {start}")
    columns = tuple(next(csv.reader([file.readline()]), ()))
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise ValueError(f"it has no column {', '.join(missing)}")
    return start, columns


def _rows(file: IO[str], columns: Sequence[str], path: Path) -> list[list[float]]:
    """The rows up to the first that is damaged.

    Raises:
        ValueError: That is the first of all.
    """
    wanted = [columns.index(name) for name in (*_NEEDED, _SUCCESS) if name in columns]
    rows: list[list[float]] = []
    for number, row in enumerate(csv.reader(file), start=3):
        if not row:
            continue
        try:
            if len(row) != len(columns):
                raise ValueError
            rows.append([_TRUTHS[word] if word in _TRUTHS else float(word) for word in (row[index] for index in wanted)])
        except ValueError:
            if not rows:
                raise ValueError(f"line {number} is no episode's") from None
            logger.warning("%s is damaged at line %d: only what stands before it is read", path, number)
            break
    return rows
