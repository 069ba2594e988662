"""What pictures show: curves with bands, bars, boxes, and intervals side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.plots.curves import Curve, Estimate
from lit_sb3_ray.plots.pictures import Style, add_legend
from lit_sb3_ray.plots.results import Results
from lit_sb3_ray.plots.tables import latex_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[["Figure"], None]

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8f98")
"""Colours that colour-blind readers tell apart (Okabe and Ito), and a grey."""

_LINES = ("-", "--", ":", "-.")
_MILLION = 1e6
# Of longer curves every so many-th point is drawn: no picture has more across.
_POINTS = 5000
# Names longer than this in all, or than this each, are written at an angle.
_WIDE_IN_ALL, _WIDE = 40, 16
_SMALL = 0.7


def curves(
    lines: Sequence[Curve],
    labels: tuple[str, str, str],
    style: Style,
    *,
    order: Sequence[str] | None = None,
    million: bool = False,
) -> Draw:
    """Shows curves, each with its band if it has one.

    Args:
        lines: The curves.
        labels: The title, and what goes to the right and upwards.
        style: How it looks.
        order: All names there are: a name has the same colour in every picture. None for those of the curves.
        million: Whether positions are shown in millions.
    """
    names = list(order or [line.label for line in lines])

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        _title(axes, *labels, style)
        for place, line in enumerate(lines):
            look = names.index(line.label) if order else place
            shown = slice(None, None, max(len(line.x) // _POINTS, 1))
            x = (line.x / _MILLION if million else line.x)[shown]
            color = COLORS[look % len(COLORS)]
            axes.plot(
                x,
                line.y[shown],
                label=_text(line.label, style),
                color=color,
                linewidth=2,
                linestyle=_LINES[look // len(COLORS) % len(_LINES)],
                # A single point makes no line.
                marker="o" if len(x) == 1 else "",
            )
            if line.low is not None and line.high is not None:
                axes.fill_between(x, line.low[shown], line.high[shown], alpha=0.25, color=color, linewidth=0)
        add_legend(axes, style)

    return draw


def bars(results: Results, labels: tuple[str, str, str], style: Style) -> Draw:
    """Shows the mean of the last evaluations with its standard error, environment by environment.

    Args:
        results: The results.
        labels: The title, and what goes to the right and upwards.
        style: How it looks.
    """

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        _title(axes, *labels, style)
        keys, environments = results.keys, results.environments
        width = 0.8 / len(keys)
        for index, key in enumerate(keys):
            found = [(place, env[key]) for place, env in enumerate(environments.values()) if key in env]
            axes.bar(
                [place + (index - (len(keys) - 1) / 2) * width for place, _ in found],
                [float(result.last_evals.mean()) for _, result in found],
                width,
                yerr=[result.std_error_last_eval for _, result in found],
                label=_text(key, style),
                color=COLORS[index % len(COLORS)],
                capsize=3,
            )
        _name_ticks(axes, range(len(environments)), list(environments), style)
        # Room for the legend.
        axes.margins(y=0.25)
        axes.grid(axis="x", visible=False)
        add_legend(axes, style)

    return draw


def boxes(results: Results, labels: tuple[str, str, str], style: Style) -> Draw:
    """Shows the last evaluations of all runs as boxes, one an environment and key.

    Args:
        results: The results.
        labels: The title, and what goes to the right and upwards.
        style: How it looks.
    """

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        _title(axes, *labels, style)
        several = len(results.environments) > 1
        data, names, looks = [], [], []
        for env, found in results.environments.items():
            for key, result in found.items():
                data.append(result.last_evals)
                names.append(f"{env}-{key}" if several else key)
                looks.append(COLORS[results.keys.index(key) % len(COLORS)])
        drawn = axes.boxplot(data, patch_artist=True, medianprops={"color": "black"})
        for patch, color in zip(drawn["boxes"], looks, strict=True):
            patch.set_facecolor((color, 0.6))
        _name_ticks(axes, range(1, len(names) + 1), names, style)
        axes.grid(axis="x", visible=False)

    return draw


def intervals(
    panels: Mapping[str, Mapping[str, Estimate]],
    x_label: str,
    style: Style,
    *,
    order: Sequence[str] | None = None,
    rule: float | None = None,
) -> Draw:
    """Shows estimates as marks in bars that are their intervals, one panel a figure.

    Args:
        panels: Estimate by name by figure.
        x_label: What goes to the right.
        style: How it looks.
        order: All names there are, as in `curves`.
        rule: Where an upright line stands, such as at a probability of a half.
    """

    def draw(figure: Figure) -> None:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, estimates) in zip(grid, panels.items(), strict=True):
            for place, (name, estimate) in enumerate(estimates.items()):
                color = COLORS[(order.index(name) if order else place) % len(COLORS)]
                axes.barh(place, estimate.high - estimate.low, 0.6, estimate.low, color=color, alpha=0.6)
                axes.vlines(estimate.value, place - 0.3, place + 0.3, color="black", linewidth=2)
            if rule is not None:
                axes.axvline(rule, color="black", linestyle="--", linewidth=1)
            axes.set_title(_text(title, style))
            # An interval that ends at the edge would look cut.
            axes.use_sticky_edges = False
            axes.locator_params(axis="x", nbins=4)
            axes.grid(axis="y", visible=False)
            axes.set_yticks(range(len(estimates)), [_text(name, style) for name in estimates])
        grid[0].invert_yaxis()
        figure.supxlabel(x_label, fontsize=style.fontsize)

    return draw


def intervals_style(panels: Mapping[str, Mapping[str, Estimate]], style: Style) -> Style:
    """The style with a size that suits so many panels and names."""
    rows = max(map(len, panels.values()))
    longest = max(len(name) for estimates in panels.values() for name in estimates)
    width = 1 + 0.008 * longest * style.fontsize + 3.2 * len(panels)
    return replace(style, figsize=(max(width, style.figsize[0]), 1.5 + 0.035 * style.fontsize * rows))


def _title(axes: Any, title: str, x_label: str, y_label: str, style: Style) -> None:
    axes.set_title(_text(title, style))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def _name_ticks(axes: Any, places: Sequence[int], names: Sequence[str], style: Style) -> None:
    axes.set_xticks(list(places), [_text(name, style) for name in names])
    if sum(map(len, names)) > _WIDE_IN_ALL or max(map(len, names)) > _WIDE:
        axes.tick_params(axis="x", labelrotation=30, labelsize=_SMALL * style.fontsize)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")


def _text(text: str, style: Style) -> str:
    """A name as matplotlib is to set it: a label with formulas is left to LaTeX, anything else is taken by the letter."""
    if style.latex and "$" not in text:
        return latex_text(text)
    return text
