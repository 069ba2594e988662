"""Results drawn, a file each: learning curves, last evaluations, and aggregates over environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.plots import estimates, figures
from lit_sb3_ray.plots.curves import Curve, Estimate
from lit_sb3_ray.plots.pictures import Output, Style, write_picture
from lit_sb3_ray.plots.results import Results
from lit_sb3_ray.plots.scores import Scores

Panels = Mapping[str, Mapping[str, Estimate]]

_METRICS = {"results": "Score", "ep_lengths": "Episode length", "successes": "Success rate"}
_THRESHOLDS = 50
_TOP_THRESHOLD = 1.5


def draw_learning_curves(results: Results, output: Output, style: Style, *, million: bool, what: str = "") -> Iterator[Path]:
    """Draws, for each environment, mean and standard error over runs at each evaluation.

    Args:
        results: The results.
        output: Where the pictures go: `<stem>_<what><environment>`.
        style: How they look.
        million: Whether env steps are shown in millions.
        what: What the names of the files begin with, after the stem.

    Yields:
        Each picture, once it is written.
    """
    x_label = "Timesteps (in Million)" if million else "Timesteps"
    for env_id, found in results.environments.items():
        lines = [
            Curve(key, result.timesteps, result.mean, result.mean - result.std_error, result.mean + result.std_error)
            for key, result in found.items()
        ]
        if lines:
            labels = (env_id, x_label, metric_label(results))
            draw = figures.curves(lines, labels, style, order=results.keys, million=million)
            yield write_picture(output.further(f"{what}{env_id}"), style, draw)


def draw_last_evaluations(results: Results, output: Output, style: Style, *, boxplot: bool) -> Iterator[Path]:
    """Draws the mean of the last evaluations as bars: the main picture; and all of them as boxes if asked for.

    Args:
        results: The results.
        output: Where the pictures go: `<stem>`, and `<stem>_boxplot`.
        style: How they look.
        boxplot: Whether to draw the boxes.

    Yields:
        Each picture, once it is written.
    """
    upwards = metric_label(results)
    labels = ("Last evaluations: mean and standard error", "Environment", upwards)
    yield write_picture(output.picture, style, figures.bars(results, labels, style))
    if boxplot:
        draw = figures.boxes(results, ("Last evaluations of all runs", "", upwards), style)
        yield write_picture(output.further("boxplot"), style, draw)


def draw_estimates(panels: Panels, scores: Scores, output: Output, style: Style) -> Path:
    """Draws `<stem>_metrics`: median, interquartile mean, mean and optimality gap of each key, with their intervals."""
    sized = figures.intervals_style(panels, style)
    draw = figures.intervals(panels, score_label(scores), sized, order=scores.order)
    return write_picture(output.further("metrics"), sized, draw)


def draw_improvement(panels: Panels, output: Output, style: Style) -> Path:
    """Draws `<stem>_improvement`: how probable it is that one key is better than another, with its interval."""
    sized = figures.intervals_style(panels, style)
    draw = figures.intervals(panels, "Probability of improvement", sized, rule=0.5)
    return write_picture(output.further("improvement"), sized, draw)


def draw_profiles(scores: Scores, confidence: float, output: Output, style: Style) -> Path:
    """Draws `<stem>_profiles`: which part of the runs of each key scores above a threshold, with a band."""
    lines = estimates.performance_profiles(scores.last, thresholds(scores), confidence)
    labels = ("Performance profiles", f"{score_label(scores)} $(\\tau)$", r"Fraction of runs with score $> \tau$")
    return write_picture(output.further("profiles"), style, figures.curves(lines, labels, style, order=scores.order))


def draw_sample_efficiency(scores: Scores, confidence: float, output: Output, style: Style, *, million: bool) -> Path:
    """Draws `<stem>_efficiency`: the interquartile mean of each key at several evaluations, with a band."""
    lines = estimates.sample_efficiency(scores.on_the_way, scores.positions, confidence)
    million = million and scores.in_steps
    steps = "Timesteps (in Million)" if million else "Timesteps"
    labels = ("Sample efficiency", steps if scores.in_steps else "Number of evaluations", f"IQM of {score_label(scores)}")
    draw = figures.curves(lines, labels, style, order=scores.order, million=million)
    return write_picture(output.further("efficiency"), style, draw)


def thresholds(scores: Scores) -> NDArray[np.float64]:
    """Where profiles are looked at: from 0 to 1.5 of normalised scores, else from the lowest to the highest there is."""
    if scores.normalized:
        return np.linspace(0.0, _TOP_THRESHOLD, _THRESHOLDS)
    values = np.concatenate([matrix.ravel() for matrix in scores.last.values()])
    return np.linspace(values.min(), values.max(), _THRESHOLDS)


def metric_label(results: Results) -> str:
    """What results are, as an axis says it."""
    return _METRICS.get(results.metric, results.metric)


def score_label(scores: Scores) -> str:
    """What scores are, as an axis says it."""
    return "Normalized Score" if scores.normalized else "Score"
