"""Figures as PNG files: drawn by the real matplotlib, the same as on the page."""

import made_studies as made
from PIL import Image

from lit_sb3_ray.tuning.reports.axes import category_axis, number_axis
from lit_sb3_ray.tuning.reports.charts import Bars, Chart, Figure, Series
from lit_sb3_ray.tuning.reports.figures import build_figures
from lit_sb3_ray.tuning.reports.png import write_png
from lit_sb3_ray.tuning.reports.record import record

ODD = "$x_{ <b> \\frac"


def colors_of(path):
    with Image.open(path) as image:
        assert image.format == "PNG"
        return image.size, {color for _, color in image.convert("RGB").getcolors(1 << 24)}


def test_every_figure_of_a_study_becomes_a_file(tmp_path):
    study = made.fill(made.new_study(), 40)
    paths = [write_png(figure, tmp_path) for figure in build_figures(record(study))]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert [path.name for path in paths] == ["history.png", "learning_curves.png", "importances.png", "slices.png"]
    for path in paths:
        (width, height), colors = colors_of(path)
        assert width > 800
        assert height > 400
        assert (0x00, 0x72, 0xB2) in colors  # What is complete, and the bars.
    assert (0xD5, 0x5E, 0x00) in colors_of(tmp_path / "learning_curves.png")[1]  # The best.


def test_names_are_no_formulas_and_odd_axes_are_drawn(tmp_path):
    points = Series("failed", (-1e300, 1.0, 1e300), (0.0, 1.0, 2.0), label=ODD, marker="ring", line="steps")
    axes = [number_axis(ODD, [1e-5, 1.0], log=True), category_axis(ODD, [ODD, "b"]), number_axis(ODD, [])]
    panels = [Chart(axis, number_axis(ODD, [0, 1]), (points,)) for axis in axes]
    path = write_png(Figure("odd", ODD, "", (*panels, Bars(ODD, {ODD: 1.0}))), tmp_path)
    assert colors_of(path)[0] == (1320, 660)
