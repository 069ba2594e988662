"""Figures that others have published, to stand beside ours."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.errors import ConfigError

PACKAGED = Path(__file__).with_name("published.csv")
"""The figures in `benchmark.md` of rl_zoo3 (MIT licence, github.com/DLR-RM/rl-baselines3-zoo): one run each, trained in the
environments' versions of the time."""

NEEDED = ("algo", "env_id", "mean_reward")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


@dataclass(frozen=True)
class Published:
    """A published figure.

    Attributes:
        algo: The algorithm.
        env_id: The environment.
        mean_reward: Mean return.
        std_reward: Its standard deviation, where it was told.
        n_timesteps: Env steps of training, where they were told.
    """

    algo: str
    env_id: str
    mean_reward: float
    std_reward: float | None = None
    n_timesteps: int | None = None


def read_published(path: Path) -> list[Published]:
    """Reads published figures.

    Args:
        path: A CSV file with a first line of column names, or Markdown with a table such as rl_zoo3's `benchmark.md` or this
            package's own. The columns `algo`, `env_id` and `mean_reward` are needed, `std_reward` and `n_timesteps` used. A
            row without a figure is passed over.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or holds something else than a number.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"published figures {str(path)!r} cannot be read: {error}") from error
    lines = text.splitlines()
    try:
        rows = _markdown_rows(lines) if any(line.lstrip().startswith("|") for line in lines) else _csv_rows(lines)
    except csv.Error as error:
        raise ConfigError(f"published figures {str(path)!r}: {error}") from error
    if not rows:
        raise ConfigError(f"published figures {str(path)!r}: there is no table in it, or an empty one")
    missing = [name for name in NEEDED if name not in rows[0]]
    if missing:
        raise ConfigError(f"published figures {str(path)!r}: there is no column {missing[0]!r}")
    return [_figure(row, path) for row in rows if row["mean_reward"].strip()]


def find_published(figures: Iterable[Published], algo: str, env_id: str) -> Published | None:
    """Finds the figure of an algorithm in an environment, or in another version of it.

    Args:
        figures: All figures.
        algo: The algorithm.
        env_id: The environment.

    Returns:
        The figure; of several versions the latest. None when there is none.
    """
    own = [figure for figure in figures if figure.algo == algo and _name(figure.env_id) == _name(env_id)]
    exact = [figure for figure in own if figure.env_id == env_id]
    return max(exact or own, key=lambda figure: _version(figure.env_id), default=None)


def _csv_rows(lines: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file; what a row lacks is empty."""
    return list(csv.DictReader(lines, restkey="more", restval=""))


def _markdown_rows(lines: Sequence[str]) -> list[dict[str, str]]:
    """The rows of the first table in a Markdown text."""
    table: list[list[str]] = []
    for line in lines:
        if line.lstrip().startswith("|"):
            table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))])
        elif table:
            break
    return [dict(zip_longest(table[0], cells[: len(table[0])], fillvalue="")) for cells in table[2:]]


def _figure(row: Mapping[str, str], path: Path) -> Published:
    algo, env_id = row["algo"], row["env_id"]

    def number(column: str) -> float | None:
        text = row.get(column, "").strip()
        match = re.fullmatch(r"(.*?)([kM]?)", text)
        value = to_number(match[1]) if match is not None else None
        if (value is None or not math.isfinite(value)) and text:
            raise ConfigError(f"published figures {str(path)!r}: {column} of {algo} on {env_id} is {text!r} and no number")
        return None if value is None or match is None else float(value) * _UNITS[match[2]]

    mean, steps = number("mean_reward"), number("n_timesteps")
    assert mean is not None, "rows without a figure are passed over"
    return Published(algo, env_id, mean, number("std_reward"), None if steps is None else int(steps))


def _name(env_id: str) -> str:
    return re.sub(r"-v\d+$", "", env_id)


def _version(env_id: str) -> int:
    match = re.search(r"-v(\d+)$", env_id)
    return -1 if match is None else int(match[1])
