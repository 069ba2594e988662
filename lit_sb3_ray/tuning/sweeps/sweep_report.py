"""What a sweep leaves: a row a run, a row an algorithm and environment, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lit_sb3_ray.config.problems import MissingPackageError, require_matplotlib
from lit_sb3_ray.experiment.checkpoints import list_checkpoints
from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.statistics import CONFIDENCE, FEWEST_VALUES, Summary, summarize
from lit_sb3_ray.tuning.sweeps.combination import Combination, RunResult, read_result
from lit_sb3_ray.tuning.sweeps.curves import average, draw, ends, write_csv, write_curves
from lit_sb3_ray.tuning.sweeps.dispatch import Outcome

RUNS, SUMMARY, TABLE, CURVES = "sweep.csv", "summary.csv", "summary.md", "curves.csv"
COLUMNS = ("algo", "env", "seeds", "mean", "median", "IQM", "std")


@dataclass(frozen=True)
class Row:
    """One run of a sweep.

    Attributes:
        combination: Which.
        state: `done`, `failed`, `unfinished` (a checkpoint or nothing is there to go on from) or `not begun`.
        num_timesteps: Env steps that are done for good.
        result: What it has come to, when it is done.
        restarts: How often its process was lost in this sweep's last start.
        failure: What went wrong, in one line.
    """

    combination: Combination
    state: str
    num_timesteps: int
    result: RunResult | None
    restarts: int
    failure: str


@dataclass(frozen=True)
class Line:
    """All runs of one algorithm in one environment.

    Attributes:
        algo: The algorithm.
        env_id: The environment.
        runs: How many there are.
        failed: How many have failed; the figures are without them, and better than the truth for it.
        summary: Figures over the final returns of those that are done; None when none is.
    """

    algo: str
    env_id: str
    runs: int
    failed: int
    summary: Summary | None

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table shows, by `COLUMNS`."""
        done = 0 if self.summary is None else self.summary.count
        seeds = (
            str(done) if done == self.runs else f"{done} of {self.runs}" + (f", {self.failed} failed" if self.failed else "")
        )
        if self.summary is None:
            return (self.algo, self.env_id, seeds, "", "", "", "")
        std = "" if self.summary.std is None else f"{self.summary.std:.2f}"
        return (self.algo, self.env_id, seeds, *map(str, (self.summary.mean, self.summary.median, self.summary.iqm)), std)


def find_rows(folder: Path, combinations: Sequence[Combination], outcomes: Mapping[Combination, Outcome]) -> list[Row]:
    """Tells where each run of a sweep stands, by its folder and by how its process has ended."""
    rows = []
    for combination in combinations:
        run, outcome = combination.run(folder), outcomes.get(combination, Outcome())
        result, failure = read_result(run), outcome.ended.failure or ""
        if result is not None:
            rows.append(Row(combination, "done", result.num_timesteps, result, outcome.restarts, ""))
            continue
        kept = list_checkpoints(run)
        state = "failed" if failure else "unfinished" if run.path.exists() else "not begun"
        rows.append(Row(combination, state, int(kept[-1].name) if kept else 0, None, outcome.restarts, failure))
    return rows


def find_lines(rows: Sequence[Row]) -> list[Line]:
    """Summarises the runs of each algorithm and environment."""
    lines = []
    for algo, env_id in dict.fromkeys((row.combination.algo, row.combination.env_id) for row in rows):
        own = [row for row in rows if (row.combination.algo, row.combination.env_id) == (algo, env_id)]
        returns = [row.result.mean_reward for row in own if row.result is not None]
        failed = sum(row.state == "failed" for row in own)
        lines.append(Line(algo, env_id, len(own), failed, summarize([returns]) if returns else None))
    return lines


def write_reports(folder: Path, rows: Sequence[Row], lines: Sequence[Line]) -> list[str]:
    """Writes `sweep.csv`, `summary.csv`, `summary.md`, `curves.csv` and, where matplotlib is installed, the curves' pictures.

    Returns:
        What is to be told of it.
    """
    _write_runs(folder, rows)
    _write_summary(folder / SUMMARY, lines)
    text = f"{markdown(lines)}\n\n{note()}\n"
    replace_file(folder / TABLE, lambda partial: partial.write_text(text))
    curves = {
        (line.algo, line.env_id): average(
            [
                row.combination.run(folder).evaluations
                for row in rows
                if row.result is not None and (row.combination.algo, row.combination.env_id) == (line.algo, line.env_id)
            ]
        )
        for line in lines
    }
    write_curves(curves, folder / CURVES)
    if not any(curves.values()):
        return []
    try:
        require_matplotlib()
    except MissingPackageError as error:
        return [f"curves are not drawn: {error}"]
    draw(curves, folder)
    return []


def table(lines: Sequence[Line]) -> str:
    """The summary for a terminal."""
    cells = [COLUMNS, *(line.cells for line in lines)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(COLUMNS))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def markdown(lines: Sequence[Line]) -> str:
    """The summary as a Markdown table."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(line.cells for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def note() -> str:
    """What has to be known to read the summary."""
    return (
        f"Final returns over seeds; IQM is the interquartile mean, in brackets {CONFIDENCE:.0%} bootstrap intervals, from "
        f"{FEWEST_VALUES} seeds on (of fewer than ten they are narrower than they should be)."
    )


def _write_runs(folder: Path, rows: Sequence[Row]) -> None:
    names = ("algo", "env", "seed", "state", "timesteps", "mean_reward", "std_reward", "episodes", "seconds", "restarts")
    table_rows = []
    for row in rows:
        which, result = row.combination, row.result
        found = (None,) * 4 if result is None else (result.mean_reward, result.std_reward, result.episodes, result.seconds)
        paths = (which.run(folder).path.relative_to(folder), which.output(folder).relative_to(folder))
        head = (which.algo, which.env_id, which.seed, row.state, row.num_timesteps)
        table_rows.append((*head, *found, row.restarts, *paths, row.failure))
    write_csv(folder / RUNS, (*names, "run", "output", "failure"), table_rows)


def _write_summary(path: Path, lines: Sequence[Line]) -> None:
    figures = [f"{name}{end}" for name in ("mean", "median", "iqm") for end in ("", "_low", "_high")]
    rows: list[tuple[object, ...]] = []
    for line in lines:
        summary = line.summary
        if summary is None:
            rows.append((line.algo, line.env_id, 0, line.runs, line.failed, *(None,) * (len(figures) + 1)))
            continue
        found = [part for each in (summary.mean, summary.median, summary.iqm) for part in (each.value, *ends(each))]
        rows.append((line.algo, line.env_id, summary.count, line.runs, line.failed, *found, summary.std))
    write_csv(path, ("algo", "env", "done", "runs", "failed", *figures, "std"), rows)
