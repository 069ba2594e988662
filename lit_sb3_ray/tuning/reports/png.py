"""Figures as PNG files, drawn by matplotlib (the extra `plots`)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.tuning.reports.charts import COLORS, Bars, Chart, Figure, Series, legend

_MARKERS = {"dot": "o", "cross": "x", "ring": "o"}
_ACROSS = 3
_DPI = 110


def write_png(figure: Figure, folder: Path) -> Path:
    """Draws a figure into a file.

    Args:
        figure: The figure; it has panels.
        folder: Where `<name>.png` goes; it is there.

    Returns:
        The file.
    """
    # Not pyplot: it would choose a window system, and keep every figure.
    from matplotlib.figure import Figure as Canvas

    panels = figure.panels
    across = min(len(panels), _ACROSS)
    down = math.ceil(len(panels) / across)
    size = (8.5, 4.5) if len(panels) == 1 else (4.0 * across, 3.0 * down)
    canvas = Canvas(figsize=size, layout="constrained")
    canvas.suptitle(figure.title, parse_math=False)
    grid = canvas.subplots(down, across, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        if isinstance(panel, Bars):
            _draw_bars(axes, panel)
        else:
            _draw_chart(axes, panel)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    path = folder / f"{figure.name}.png"
    replace_file(path, lambda partial: canvas.savefig(partial, dpi=_DPI))
    return path


def _draw_chart(axes: Any, chart: Chart) -> None:
    if chart.x.log:
        axes.set_xscale("log")
    axes.set_xlim(chart.x.low, chart.x.high)
    axes.set_ylim(chart.y.low, chart.y.high)
    for axis, side in ((chart.x, axes.xaxis), (chart.y, axes.yaxis)):
        side.set_ticks([value for value, _ in axis.ticks], [word for _, word in axis.ticks], parse_math=False)
        side.set_ticks([], minor=True)
        side.set_label_text(f"{axis.label} (log)" if axis.log else axis.label, parse_math=False)
    axes.grid(axis="y", alpha=0.2)
    for rule in chart.rules:
        axes.axvline(rule, color="black", alpha=0.12, linewidth=0.8)
    named = legend(chart)
    for series in chart.series:
        if series.x:
            _draw_series(axes, chart, series, series.label if named.get(series.label) is series else "")
    axes.spines[["top", "right"]].set_visible(False)
    if named:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(named), frameon=False, fontsize="small")


def _draw_series(axes: Any, chart: Chart, series: Series, label: str) -> None:
    ring = series.marker == "ring"
    axes.plot(
        [min(max(x, chart.x.low), chart.x.high) for x in series.x],
        [min(max(y, chart.y.low), chart.y.high) for y in series.y],
        color=(COLORS[series.color], series.opacity),
        label=label or "_",
        linestyle="-" if series.line else "",
        linewidth=1.6 if series.opacity == 1 else 0.8,
        drawstyle="steps-post" if series.line == "steps" else "default",
        marker=_MARKERS.get(series.marker, ""),
        markevery=[len(series.x) - 1] if series.at_end else None,
        markersize=7 if ring else 4,
        markerfacecolor="none" if ring else COLORS[series.color],
        markeredgecolor=COLORS[series.color],
        clip_on=False,
    )


def _draw_bars(axes: Any, bars: Bars) -> None:
    places = range(len(bars.shares))
    drawn = axes.barh(places, list(bars.shares.values()), color=COLORS["complete"])
    axes.bar_label(drawn, fmt="%.2f", padding=3)
    axes.set_yticks(places, list(bars.shares), parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(bars.label)
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
