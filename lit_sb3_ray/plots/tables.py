"""Tables: one row an environment (or a key), as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.curves import Estimate
from lit_sb3_ray.plots.results import Results

TableFormat = Literal["markdown", "latex", "csv"]

SUFFIXES: dict[TableFormat, str] = {"markdown": ".md", "latex": ".tex", "csv": ".csv"}
NOTHING = "-"

_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${sign}$" for sign in "<>|"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
}


@dataclass(frozen=True)
class Table:
    """A table to read, and its numbers.

    Attributes:
        headers: The titles of the columns.
        rows: The cells as text; the first of each row names it.
        names: The titles of the columns of numbers, for CSV.
        numbers: The numbers in full, one row a result.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    numbers: tuple[tuple[object, ...], ...]

    def render(self, form: TableFormat) -> str:
        """Writes the table, its last line ended."""
        return {"markdown": _markdown, "latex": _latex, "csv": _csv}[form](self)


def results_table(results: Results) -> Table:
    """Tables the last evaluations: mean with standard error, or median, of each key in each environment."""
    keys = results.keys
    rows, numbers = [], []
    for env, found in results.environments.items():
        rows.append((env, *(_cell(found[key], results.median) if key in found else NOTHING for key in keys)))
        for key, result in found.items():
            last = result.last_evals
            ends = (float(np.median(last)), float(last.min()), float(last.max()))
            runs = (result.n_runs, int(result.timesteps[-1]))
            numbers.append((env, key, *runs, float(last.mean()), result.std_error_last_eval, *ends))
    names = ("environment", "key", "runs", "timesteps", "mean", "std_error", "median", "min", "max")
    return Table(("Environments", *keys), tuple(rows), names, tuple(numbers))


def estimates_table(panels: Mapping[str, Mapping[str, Estimate]], title: str) -> Table:
    """Tables figures with their intervals.

    Args:
        panels: Estimate by name (a key, or a pair of keys) by figure.
        title: What the names are.
    """
    names = list(dict.fromkeys(name for estimates in panels.values() for name in estimates))
    rows = tuple((name, *(_interval(estimates[name]) for estimates in panels.values())) for name in names)
    numbers = tuple(
        (name, figure, estimate.value, estimate.low, estimate.high)
        for figure, estimates in panels.items()
        for name, estimate in estimates.items()
    )
    return Table((title, *panels), rows, (title.lower(), "figure", "value", "low", "high"), numbers)


def number(value: float) -> str:
    """Writes a number with as many decimals as its size needs: none from 100 on, three below 1."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def _cell(result: Result, median: bool) -> str:
    last = result.last_evals
    if median:
        return number(float(np.median(last)))
    mean = float(last.mean())
    decimals = len(number(mean).partition(".")[2])
    return f"{mean:.{decimals}f} +/- {result.std_error_last_eval:.{decimals}f}"


def _interval(estimate: Estimate) -> str:
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def _markdown(table: Table) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (table.headers, *table.rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(table.headers))]
    lines = [" | ".join((row[0].ljust(widths[0]), *(map(str.rjust, row[1:], widths[1:])))) for row in cells]
    rule = " | ".join(("-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])))
    return "".join(f"| {line} |\n" for line in (lines[0], rule, *lines[1:]))


def _latex(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"{' & '.join(map(latex_text, cells))} \\\\"

    body = [line(row).replace("+/-", r"$\pm$") for row in table.rows]
    columns = "l" + "r" * (len(table.headers) - 1)
    head = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", line(table.headers), r"\hline"]
    return "\n".join([*head, *body, r"\hline", r"\end{tabular}", ""])


def latex_text(text: str) -> str:
    """Escapes what LaTeX takes for commands."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(table.numbers)
    return text.getvalue()
