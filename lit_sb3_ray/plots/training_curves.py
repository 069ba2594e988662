"""Training curves: the rolling mean of what episodes came to, over env steps, episodes or hours; one a run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.curves import Array, Curve
from lit_sb3_ray.plots.monitor_files import Episodes, read_episodes
from lit_sb3_ray.plots.runs import nothing_to

logger = logging.getLogger(__name__)

XAxis = Literal["steps", "episodes", "time"]
YAxis = Literal["success", "reward", "length"]

X_LABELS: dict[XAxis, str] = {"steps": "Timesteps", "episodes": "Episodes", "time": "Walltime (in hours)"}
Y_LABELS: dict[YAxis, str] = {
    "success": "Training Success Rate",
    "reward": "Training Episodic Reward",
    "length": "Training Episode Length",
}


@dataclass(frozen=True)
class View:
    """What of the episodes is shown.

    Attributes:
        x_axis: What goes to the right.
        y_axis: What goes upwards.
        window: Over how many episodes the rolling mean is taken.
        max_timesteps: Env steps after which episodes are left out; None for all.
    """

    x_axis: XAxis = "steps"
    y_axis: YAxis = "reward"
    window: int = 100
    max_timesteps: int | None = None


def training_curves(runs: Sequence[Path], view: View) -> list[Curve]:
    """Makes a curve of each run.

    A run that cannot be shown is told by a warning.

    Args:
        runs: The run folders.
        view: What to show.

    Returns:
        The curves, named after the folders; there is at least one.

    Raises:
        ConfigError: There is nothing to show.
    """
    curves: list[Curve] = []
    problems: list[str] = []
    for run in runs:
        try:
            curves.append(training_curve(read_episodes(run), run.name, view))
        except ConfigError as error:
            problems.append(str(error))
    if not curves:
        raise nothing_to("draw", problems)
    for problem in problems:
        logger.warning("%s: not drawn", problem)
    return curves


def training_curve(episodes: Episodes, name: str, view: View) -> Curve:
    """Makes the curve of one run.

    Args:
        episodes: Its episodes.
        name: Its name, for the legend and messages.
        view: What to show.

    Raises:
        ConfigError: The environment does not tell what is asked for, or there are fewer episodes than the window is long.
    """
    values = {"success": episodes.successes, "reward": episodes.returns, "length": episodes.lengths}[view.y_axis]
    if values is None:
        raise ConfigError(f"{name} tells no success of its episodes (no column is_success)")
    steps = np.cumsum(episodes.lengths)
    shown = len(steps) if view.max_timesteps is None else int(np.searchsorted(steps, view.max_timesteps, side="right"))
    if shown < view.window:
        within = "" if view.max_timesteps is None else f" within {view.max_timesteps} env steps"
        raise ConfigError(f"{name} has {shown} episodes{within}, fewer than the window of {view.window} (-w)")
    x = _positions(episodes, steps, view.x_axis)[view.window - 1 : shown]
    return Curve(name, x, sliding_window_view(values[:shown], view.window).mean(axis=-1))


def _positions(episodes: Episodes, steps: Array, axis: XAxis) -> Array:
    if axis == "steps":
        return steps
    if axis == "time":
        return episodes.seconds / 3600
    return np.arange(len(steps), dtype=np.float64)
