"""Charts as SVG: well-formed, nothing from outside, nothing that runs."""

import xml.etree.ElementTree as ElementTree

from lit_sb3_ray.tuning.reports.axes import number_axis
from lit_sb3_ray.tuning.reports.charts import COLORS, Bars, Chart, Series
from lit_sb3_ray.tuning.reports.svg import TIPS, draw

NASTY = '<script>alert("x")</script>&'


def chart_of(*series, label="x"):
    axis = number_axis(label, [0.0, 10.0])
    return Chart(axis, axis, series, rules=(5.0,))


def parsed(panel):
    return ElementTree.fromstring(draw(panel, 300, 200))


def test_each_marker_and_line_is_drawn_within_the_picture():
    points = {"x": (0.0, 5.0, 99.0), "y": (-99.0, 5.0, 10.0)}
    looks = enumerate([("dot", "", False), ("cross", "straight", True), ("ring", "", False), ("", "steps", False)])
    series = [Series("best", **points, label=f"{at}", marker=mark, line=line, at_end=end) for at, (mark, line, end) in looks]
    root = parsed(chart_of(*series))
    groups = [group for group in root.iter("g") if group.get("color") == COLORS["best"]]
    assert len(groups) == 8  # Each once in the chart and once in the legend.
    for circle in root.iter("circle"):
        assert 0 <= float(circle.get("cx")) <= 300
        assert 0 <= float(circle.get("cy")) <= 200


def test_names_are_escaped():
    tipped = Series("best", (1.0,), (1.0,), label=NASTY, tips=(NASTY,))
    for panel in (chart_of(tipped, label=NASTY), Bars(NASTY, {NASTY: 0.5})):
        assert "<script" not in draw(panel, 300, 200)
        assert NASTY in "".join(parsed(panel).itertext())


def test_points_have_tips_unless_there_are_very_many():
    few, many = TIPS, TIPS + 1
    for number, titles in ((few, few), (many, 0)):
        values = tuple(float(value % 10) for value in range(number))
        root = parsed(chart_of(Series("complete", values, values, tips=tuple(map(str, range(number))))))
        assert len(list(root.iter("title"))) == titles


def test_an_empty_chart_is_still_a_picture():
    assert parsed(chart_of()).get("viewBox") == "0 0 300 200"
    assert parsed(chart_of(Series("best", (), ()))).tag == "svg"
