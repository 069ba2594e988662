"""Charts as SVG, for the page: a few kilobytes each, drawn without any package."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace

from lit_sb3_ray.tuning.reports.axes import Axis
from lit_sb3_ray.tuning.reports.charts import COLORS, Bars, Chart, Series, legend

TIPS = 250
"""More points than that have no tips: each is an element of its own then, not part of one path."""

_LETTER = 7.6
"""Width that a letter of the page's small type takes at most on average, in pixels."""


@dataclass(frozen=True)
class Frame:
    """The drawing area in pixels: the chart's box within its picture."""

    left: float
    top: float
    width: float
    height: float

    def at(self, chart: Chart, x: float, y: float) -> tuple[str, str]:
        """Pixels of a point, as written in a path."""
        return _px(self.left + chart.x.place(x) * self.width), _px(self.top + (1 - chart.y.place(y)) * self.height)


def draw(panel: Chart | Bars, width: int, height: int) -> str:
    """Draws a chart.

    Args:
        panel: The chart.
        width: Pixels across.
        height: Pixels down; bars take what they need instead.

    Returns:
        An `<svg>` element with everything in it; it refers to nothing outside.
    """
    return _draw_bars(panel, width) if isinstance(panel, Bars) else _draw_chart(panel, width, height)


def _draw_chart(chart: Chart, width: int, height: int) -> str:
    named = legend(chart)
    left = 30 + _LETTER * max((len(word) for _, word in chart.y.ticks), default=0)
    top = 26 if named else 10
    frame = Frame(left, top, width - left - 12, height - top - 40)
    parts = [_legend(named), _axes(chart, frame)]
    parts += [_series(chart, series, frame) for series in chart.series if series.x]
    return _picture("".join(parts), width, height, f"{chart.y.label} by {chart.x.label}")


def _draw_bars(bars: Bars, width: int) -> str:
    left = 16 + _LETTER * max(map(len, bars.shares))
    room = width - left - 60
    parts = []
    for row, (name, share) in enumerate(bars.shares.items()):
        top = 4 + 22 * row
        parts.append(f'<text x="{_px(left - 8)}" y="{top + 12}" text-anchor="end">{_text(name)}</text>')
        parts.append(
            f'<rect x="{_px(left)}" y="{top}" width="{_px(room * share + 1)}" height="16" fill="{COLORS["complete"]}"/>'
        )
        parts.append(f'<text x="{_px(left + room * share + 7)}" y="{top + 12}">{share:.2f}</text>')
    return _picture("".join(parts), width, 22 * len(bars.shares) + 6, bars.label)


def _picture(content: str, width: int, height: int, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" aria-label="{_text(label)}" '
        f'font-size="12" fill="currentColor">{content}</svg>'
    )


def _axes(chart: Chart, frame: Frame) -> str:
    right, bottom = _px(frame.left + frame.width), _px(frame.top + frame.height)
    left, top = _px(frame.left), _px(frame.top)
    lines = [f"M{left} {frame.at(chart, chart.x.low, value)[1]}H{right}" for value, _ in chart.y.ticks]
    lines += [f"M{frame.at(chart, value, chart.y.low)[0]} {top}V{bottom}" for value in chart.rules]
    grid = f'<path d="{"".join(lines)}" stroke="currentColor" stroke-opacity=".16" fill="none"/>'
    box = f'<path d="M{left} {top}V{bottom}H{right}" stroke="currentColor" stroke-opacity=".6" fill="none"/>'
    middle, low = _px(frame.left + frame.width / 2), frame.top + frame.height
    upright = _px(frame.top + frame.height / 2)
    labels = [
        f'<text x="{middle}" y="{_px(low + 34)}" text-anchor="middle">{_text(_named(chart.x))}</text>',
        f'<text transform="translate(12 {upright}) rotate(-90)" text-anchor="middle">{_text(_named(chart.y))}</text>',
    ]
    for value, word in chart.x.ticks:
        x = frame.at(chart, value, chart.y.low)[0]
        labels.append(f'<text x="{x}" y="{_px(low + 16)}" text-anchor="middle">{_text(word)}</text>')
    for value, word in chart.y.ticks:
        y = float(frame.at(chart, chart.x.low, value)[1]) + 4
        labels.append(f'<text x="{_px(frame.left - 6)}" y="{_px(y)}" text-anchor="end">{_text(word)}</text>')
    return grid + box + "".join(labels)


def _named(axis: Axis) -> str:
    return f"{axis.label} (log)" if axis.log else axis.label


def _legend(named: dict[str, Series]) -> str:
    parts, left = [], 40.0
    for label, series in named.items():
        line = f'<path d="M{_px(left)} 10h18" stroke-width="2"/>' if series.line else ""
        mark = _mark(replace(series, tips=()), [(_px(left + 9), "10")]) if series.marker else ""
        parts.append(f'<g color="{COLORS[series.color]}" stroke="currentColor" fill="none">{line}{mark}</g>')
        parts.append(f'<text x="{_px(left + 24)}" y="14">{_text(label)}</text>')
        left += 44 + _LETTER * len(label)
    return "".join(parts)


def _series(chart: Chart, series: Series, frame: Frame) -> str:
    points = [frame.at(chart, x, y) for x, y in zip(series.x, series.y, strict=True)]
    parts = []
    if series.line and len(points) > 1:
        look = 'stroke-width="2"' if series.opacity == 1 else f'stroke-opacity="{series.opacity:.2f}"'
        parts.append(f'<path d="{_path(points, series.line)}" {look} stroke-linejoin="round"/>')
    if series.marker:
        parts.append(_mark(series, points[-1:] if series.at_end else points))
    tip = f"<title>{_text(series.tips[0])}</title>" if series.at_end and series.tips else ""
    return f'<g color="{COLORS[series.color]}" stroke="currentColor" fill="none">{tip}{"".join(parts)}</g>'


def _path(points: list[tuple[str, str]], line: str) -> str:
    (x, y), *rest = points
    if line == "steps":
        return f"M{x} {y}" + "".join(f"H{right}V{up}" for right, up in rest)
    return f"M{x} {y}L" + " ".join(f"{right} {up}" for right, up in rest)


def _mark(series: Series, points: list[tuple[str, str]]) -> str:
    if series.marker == "ring":
        return "".join(f'<circle cx="{x}" cy="{y}" r="5" stroke-width="2"/>' for x, y in points)
    if series.marker == "cross":
        path = "".join(f"M{x} {y}m-3-3l6 6m0-6l-6 6" for x, y in points)
        return f'<path d="{path}" stroke-width="1.5"/>'
    if series.tips and not series.at_end and len(points) <= TIPS:
        return "".join(
            f'<circle cx="{x}" cy="{y}" r="3" fill="currentColor" stroke="none"><title>{_text(tip)}</title></circle>'
            for (x, y), tip in zip(points, series.tips, strict=True)
        )
    path = "".join(f"M{x} {y}h0" for x, y in points)
    return f'<path d="{path}" stroke-width="5" stroke-linecap="round"/>'


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return html.escape(text)
