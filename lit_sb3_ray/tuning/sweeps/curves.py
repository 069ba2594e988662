"""Learning curves over seeds: the mean return of the evaluations of several runs by env steps, with its interval."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.experiment.locate import env_folder_name
from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.statistics import Figure, mean_figure

Steps = NDArray[np.float64]


@dataclass(frozen=True)
class CurvePoint:
    """One point of a learning curve.

    Attributes:
        num_timesteps: Env steps.
        mean: Mean over runs of the mean return.
        runs: Runs that have come so far; the mean is over them.
    """

    num_timesteps: int
    mean: Figure
    runs: int


def average(files: Sequence[Path]) -> list[CurvePoint]:
    """Averages the evaluations of several runs.

    Args:
        files: Their `evaluations.npz`; one that is not there, or empty, counts for nothing.

    Returns:
        A point for each env step at which any run was evaluated. A run that was evaluated a little before and after counts
        with what lies between on a straight line; before its first and after its last evaluation it does not count.
    """
    curves = [_read(file) for file in files]
    curves = [(steps, returns) for steps, returns in curves if len(steps)]
    points = []
    for step in sorted({float(step) for steps, _ in curves for step in steps}):
        values = [float(np.interp(step, steps, returns)) for steps, returns in curves if steps[0] <= step <= steps[-1]]
        points.append(CurvePoint(int(step), mean_figure(values), len(values)))
    return points


Curves = Mapping[tuple[str, str], Sequence[CurvePoint]]
"""A curve by algorithm and environment."""


def write_curves(curves: Curves, path: Path) -> None:
    """Writes `curves.csv`: algorithm, environment, env steps, mean return with its interval, runs."""
    rows = [
        (algo, env_id, point.num_timesteps, point.mean.value, *ends(point.mean), point.runs)
        for (algo, env_id), points in curves.items()
        for point in points
    ]
    write_csv(path, ("algo", "env", "timesteps", "mean", "mean_low", "mean_high", "runs"), rows)


def ends(figure: Figure) -> tuple[float | None, float | None]:
    """A figure's interval as two columns, empty where there is none."""
    return (None, None) if figure.interval is None else (figure.interval.low, figure.interval.high)


def write_csv(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Writes a table, whole or not at all."""

    def write(partial: Path) -> None:
        with partial.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(rows)

    replace_file(path, write)


def draw(curves: Curves, folder: Path) -> list[Path]:
    """Draws one picture an environment, each algorithm a line with its interval as a band; matplotlib must be installed.

    Returns:
        The pictures.
    """
    pictures = []
    for env_id in dict.fromkeys(env_id for (_, env_id), points in curves.items() if points):
        path = folder / f"curves_{env_folder_name(env_id)}.png"
        _draw(env_id, {algo: points for (algo, env), points in curves.items() if env == env_id and points}, path)
        pictures.append(path)
    return pictures


def _draw(env_id: str, curves: Mapping[str, Sequence[CurvePoint]], path: Path) -> None:
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(7.0, 4.5), layout="constrained")
    axes = picture.add_subplot(title=env_id, xlabel="env steps", ylabel="mean return")
    for algo, points in curves.items():
        steps = [point.num_timesteps for point in points]
        (line,) = axes.plot(steps, [point.mean.value for point in points], label=f"{algo} ({points[0].runs} runs)")
        known = [(point.num_timesteps, point.mean.interval) for point in points if point.mean.interval is not None]
        if known:
            low, high = zip(*((interval.low, interval.high) for _, interval in known), strict=True)
            axes.fill_between([step for step, _ in known], low, high, alpha=0.2, color=line.get_color())
    axes.grid(alpha=0.3)
    axes.legend()
    replace_file(path, lambda partial: picture.savefig(partial, dpi=120, format="png"))


def _read(file: Path) -> tuple[Steps, Steps]:
    history = read_evaluations(file)
    returns = [float(np.mean(row)) for row in history["results"]]
    return np.array(history["timesteps"], dtype=np.float64), np.array(returns)
