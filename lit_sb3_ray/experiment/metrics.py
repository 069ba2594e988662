"""`metrics.csv`: what SB3's logger dumps, one row an env step."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter

from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.lit.refusals import refusing

STEP = "step"


class MetricsFile(KVWriter):
    """Writes scalars to a CSV file with one column a metric; a metric that is new gets a column, empty until then.

    Two dumps at the same env step, such as a rollout's and an evaluation's, share a row.
    """

    def __init__(self, path: Path) -> None:
        """Continues the file if there is one.

        Args:
            path: The file.
        """
        self.path = path
        self.columns, rows = read_rows(path) if path.exists() else ([STEP], [])
        self._last: dict[str, Any] = {**rows[-1], STEP: _number(rows[-1].get(STEP))} if rows else {}

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Appends one row, or adds to the last one if that is of the same step.

        Args:
            key_values: Metric names and values; what is no number is left out.
            key_excluded: Per metric, the outputs that do not want it.
            step: The env step.
        """
        row = {
            name: value
            for name, value in key_values.items()
            if isinstance(value, int | float | np.number) and "csv" not in (key_excluded.get(name) or ())
        }
        if not row:
            return
        fresh = [name for name in sorted(row) if name not in self.columns]
        if step < self._last.get(STEP, 0):
            self._insert(row, step, fresh)
            return
        again = self._last.get(STEP) == step
        self._last = {**self._last, **row, STEP: step} if again else {STEP: step, **row}
        if fresh or again or not self.path.exists():
            rows = read_rows(self.path)[1] if self.path.exists() else []
            self.columns += fresh
            write_rows(self.path, self.columns, [*(rows[:-1] if again else rows), self._last])
            return
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self.columns).writerow(self._last)

    def _insert(self, row: dict[str, Any], step: int, fresh: list[str]) -> None:
        """Puts a row in its place, or adds to the one of its step: what is told late, such as an evaluation on the side."""
        _, rows = read_rows(self.path)
        place = next(index for index, other in enumerate(rows) if _number(other.get(STEP)) >= step)
        if _number(rows[place].get(STEP)) == step:
            rows[place] = {**rows[place], **row}
        else:
            rows.insert(place, {STEP: str(step), **row})
        self.columns += fresh
        write_rows(self.path, self.columns, rows)

    def close(self) -> None:
        """Does nothing: the file is closed after every row."""


def cut_metrics(path: Path, last_step: int, column: str = STEP, without: Collection[int] = ()) -> None:
    """Removes the rows of a CSV file that are later than an env step; nothing where there is no file or no such column.

    Args:
        path: The file.
        last_step: The last env step that stays.
        column: The column of the env step.
        without: Env steps whose evaluations go, too.
    """
    if not path.exists():
        return
    columns, rows = read_rows(path)
    if column in columns:
        # A row that a crash cut short may hold a number that is not its own.
        is_whole = path.read_bytes().endswith(b"\n")
        whole = rows if is_whole else rows[:-1]
        kept = [row for row in whole if _number(row.get(column)) <= last_step and not _is_evaluation(row, column, without)]
        if len(kept) < len(rows) or not is_whole:
            write_rows(path, columns, kept)


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Reads a CSV file: its columns, and its rows by column.

    Raises:
        ConfigError: It is none.
    """
    with refusing(f"{path} is no table of metrics"), path.open(newline="") as file:
        reader = csv.DictReader(file)
        return list(reader.fieldnames or [STEP]), list(reader)


def write_rows(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    """Writes a CSV file, whole or not at all."""

    def write(partial: Path) -> None:
        with partial.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    replace_file(path, write)


def _is_evaluation(row: dict[str, str], column: str, steps: Collection[int]) -> bool:
    return bool(row.get("eval/mean_reward")) and _number(row.get(column)) in steps


def _number(text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        return float("inf")
