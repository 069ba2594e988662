"""The table of a benchmark, as Markdown and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lit_sb3_ray.benchmarking.published import Published
from lit_sb3_ray.benchmarking.runs import Run
from lit_sb3_ray.benchmarking.scoring import Rules, Score
from lit_sb3_ray.experiment.run_folder import replace_file

MARKDOWN, TABLE = "benchmark.md", "benchmark.csv"
# The first seven are rl_zoo3's, by name and order.
COLUMNS = ("algo", "env_id", "mean_reward", "std_reward", "n_timesteps", "eval_timesteps", "eval_episodes", "published", "run")
TEXTS = frozenset({"algo", "env_id", "n_timesteps", "published", "run", "problem"})
CSV_COLUMNS = (
    *COLUMNS[:7],
    "published_mean_reward",
    "published_std_reward",
    "published_n_timesteps",
    "published_env_id",
    "run",
    "problem",
)


@dataclass(frozen=True)
class Row:
    """One run in the table.

    Attributes:
        run: The run.
        score: What it has come to; None when it could not be played, or has not been.
        problem: Why not.
        published: What others have published of its algorithm and environment.
    """

    run: Run
    score: Score | None = None
    problem: str | None = None
    published: Published | None = None


def write_table(folder: Path, rows: Sequence[Row], rules: Rules) -> tuple[Path, Path]:
    """Writes the table, whole or not at all.

    Args:
        folder: Where to.
        rows: Its rows.
        rules: How the runs were played, for the words above it.

    Returns:
        The Markdown file and the CSV file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = f"{_preface(rules)}\n\n{markdown(rows)}\n"
    replace_file(folder / MARKDOWN, lambda partial: partial.write_text(text, encoding="utf-8"))
    replace_file(folder / TABLE, lambda partial: _write_csv(partial, rows))
    return folder / MARKDOWN, folder / TABLE


def markdown(rows: Sequence[Row]) -> str:
    """Writes the table as Markdown; it has a column of problems where there are any.

    Args:
        rows: Its rows.
    """
    names = [*COLUMNS, *(["problem"] if any(row.problem for row in rows) else [])]
    cells = [names, *([_in_one_cell(_cell(row, name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]

    def spell(line: Sequence[str]) -> str:
        padded = [
            f"{cell:<{width}}" if name in TEXTS else f"{cell:>{width}}"
            for cell, width, name in zip(line, widths, names, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if name in TEXTS else f"{'-' * (width - 1)}:" for width, name in zip(widths, names, strict=True)]
    return "\n".join([spell(names), spell(rule), *(spell(line) for line in cells[1:])])


def short_steps(n_timesteps: int) -> str:
    """Writes a number of env steps as benchmarks do: `500k`, `10M`.

    Args:
        n_timesteps: The number; below a thousand it is written as it is.
    """
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if n_timesteps >= size:
            return f"{n_timesteps // size}{unit}"
    return str(n_timesteps)


def _cell(row: Row, name: str) -> str:
    if name in ("algo", "env_id"):
        return str(getattr(row.run, name))
    if name == "run":
        return row.run.path.name
    if name == "published":
        return _published(row)
    if name == "problem":
        return row.problem or ""
    if row.score is None:
        return ""
    value = getattr(row.score, name)
    return short_steps(value) if name == "n_timesteps" else f"{value:.3f}" if isinstance(value, float) else str(value)


def _in_one_cell(text: str) -> str:
    """Keeps a text from ending its cell, or its line."""
    return " ".join(text.split()).replace("|", "\\|")


def _published(row: Row) -> str:
    """The published figure, and how it came about where that differs from ours."""
    figure = row.published
    if figure is None:
        return ""
    text = f"{figure.mean_reward:.3f}" + ("" if figure.std_reward is None else f" ± {figure.std_reward:.3f}")
    differing = [figure.env_id] if figure.env_id != row.run.env_id else []
    if figure.n_timesteps is not None:
        steps = short_steps(figure.n_timesteps)
        differing += [steps] if row.score is None or steps != short_steps(row.score.n_timesteps) else []
    return f"{text} ({', '.join(differing)})" if differing else text


def _preface(rules: Rules) -> str:
    model = "best" if rules.load_best else "final"
    where = f"in {rules.n_envs} environments each" if rules.n_envs > 1 else "in one environment"
    return f"""## Performance of trained agents

Each run's {model} model, trained for `n_timesteps`, is played for {rules.n_timesteps:,} steps {where} (seed {rules.seed});
`mean_reward` and `std_reward` are of the episodes that ended, `eval_timesteps` the steps in them. The likeliest
action is taken, but for Atari games and MiniGrid, where actions are drawn. "M" is a million steps, "k" a thousand.

`published` is the mean ± standard deviation that others tell of the same algorithm and environment. In brackets: the version
of the environment, and the steps of training, where they are not the run's. One run each, on both sides: a hint at what an
algorithm can do, and no comparison of algorithms."""


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, CSV_COLUMNS)
        writer.writeheader()
        writer.writerows(_csv_row(row) for row in rows)


def _csv_row(row: Row) -> dict[str, object]:
    score: dict[str, object] = {} if row.score is None else asdict(row.score)
    figure: dict[str, object] = {} if row.published is None else asdict(row.published)
    return {
        "algo": row.run.algo,
        "env_id": row.run.env_id,
        **score,
        **{f"published_{name}": value for name, value in figure.items() if name != "algo"},
        "run": str(row.run.path),
        "problem": row.problem or "",
    }
