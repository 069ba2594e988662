"""Charts as data: what is drawn, not how. `svg` and `png` draw them, so that page and files show the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lit_sb3_ray.tuning.reports.axes import Axis

COLORS = {
    "complete": "#0072b2",
    "best": "#d55e00",
    "pruned": "#8a8f98",
    "running": "#009e73",
    "failed": "#cc79a7",
}
"""Colours that colour-blind readers tell apart, legible on white and on black."""

Marker = Literal["", "dot", "cross", "ring"]
Line = Literal["", "straight", "steps"]


@dataclass(frozen=True)
class Series:
    """Points of one look.

    Attributes:
        color: A name of `COLORS`.
        x: Where they are.
        y: Their heights.
        label: What the legend says; series of one label share its line.
        marker: What stands at each point.
        line: How points are joined.
        at_end: Whether only the last point is marked.
        opacity: How solid its line is, from 0 to 1; below 1 it is thin, too, because there are many such.
        tips: What each point is; empty, or one a point.
    """

    color: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    label: str = ""
    marker: Marker = "dot"
    line: Line = ""
    at_end: bool = False
    opacity: float = 1.0
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """Series over two axes.

    Attributes:
        x: The axis to the right.
        y: The axis upwards.
        series: What is drawn, the last on top.
        rules: Where faint upright lines stand.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    rules: tuple[float, ...] = ()


@dataclass(frozen=True)
class Bars:
    """Shares of a whole.

    Attributes:
        label: What they are shares of.
        shares: Share by name, from 0 to 1, the largest first.
    """

    label: str
    shares: dict[str, float]


@dataclass(frozen=True)
class Figure:
    """Charts that belong together.

    Attributes:
        name: The file's name without its suffix.
        title: What it shows.
        note: How to read it.
        panels: The charts; none when there is nothing to draw, and then `note` says why.
    """

    name: str
    title: str
    note: str
    panels: tuple[Chart | Bars, ...]


def legend(chart: Chart) -> dict[str, Series]:
    """The first series of each label."""
    first: dict[str, Series] = {}
    for series in chart.series:
        if series.label and series.x:
            first.setdefault(series.label, series)
    return first
