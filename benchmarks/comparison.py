"""Comparing contenders fairly: in turns, several rounds, medians and ratios; one table, one JSON file."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

Contender = Callable[[int], float]


def alternate(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Lets contenders run in turns, the order reversed every other round so that none always goes first.

    Args:
        contenders: Each takes the round's number and returns its figure.
        rounds: How many rounds.

    Returns:
        The figures of each contender, round by round.
    """
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders)[:: -1 if number % 2 else 1]
        for name in order:
            figures[name].append(contenders[name](number))
    return figures


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def report(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], path: Path | None, **details: Any) -> None:
    """Prints a table and writes the same as JSON, with what it was measured on.

    Args:
        title: What was compared.
        columns: Column names.
        rows: Cells; floats are rounded for the table only.
        path: Where the JSON goes; None writes none.
        **details: Further entries of the JSON, such as all single figures.
    """
    cells = [[f"{cell:,.3g}" if isinstance(cell, float) and abs(cell) < 100 else _plain(cell) for cell in row] for row in rows]
    lines = [list(columns), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(f"\n{title}")
    for line in [lines[0], ["-" * width for width in widths], *cells]:
        first, *others = zip(line, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "title": title,
            "columns": list(columns),
            "rows": [list(row) for row in rows],
            **details,
            "machine": machine(),
        }
        path.write_text(json.dumps(content | details, indent=1))
        print(f"written to {path}")


def machine() -> dict[str, Any]:
    """What a figure depends on besides the code."""
    packages = ("torch", "stable-baselines3", "sb3-contrib", "rl_zoo3", "pytorch-lightning", "gymnasium", "numpy")
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _plain(cell: Any) -> str:
    return f"{cell:,.0f}" if isinstance(cell, float) else str(cell)
