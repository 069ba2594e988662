"""Pictures: every format, what is in them, and what cannot be drawn told in one line."""

import importlib.util

import numpy as np
import pytest
from matplotlib.figure import Figure
from plotted_runs import assert_drawn, look_at

from lit_sb3_ray.config.problems import MissingPackageError
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots import figures
from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.curves import Curve, Estimate
from lit_sb3_ray.plots.pictures import Style, output_files, write_picture
from lit_sb3_ray.plots.results import Results

STYLE = Style()
X = np.arange(10.0)
LINE = Curve("PPO-logs", X * 1e5, X**2, X**2 - 5, X**2 + 5)
LABELS = ("CartPole-v1", "Timesteps", "Score")


def result(*ends):
    return Result(np.array([1000.0]), np.array([ends], float))


RESULTS = Results("results", False, {"A-v0": {"x": result(1, 3), "y": result(5, 9, 7)}, "B-v0": {"y": result(2.0, 2.0)}})


def drawn(draw):
    figure = Figure()
    draw(figure)
    return figure.axes


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_every_format_is_written_and_the_same_each_time(form, tmp_path):
    paths = [tmp_path / "new" / f"{name}.{form}" for name in ("first", "second")]
    for path in paths:
        assert write_picture(path, STYLE, figures.curves([LINE], LABELS, STYLE)) == path
        assert_drawn(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(paths[0].parent.iterdir()) == paths


def test_the_size_is_as_asked_for(tmp_path):
    path = write_picture(tmp_path / "a.png", Style(figsize=(3, 2)), figures.curves([LINE], LABELS, STYLE))
    assert look_at(path)[:2] == (360, 240)


def test_no_display_and_no_pyplot_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("MPLBACKEND", "TkAgg")
    from matplotlib import pyplot

    write_picture(tmp_path / "a.png", STYLE, figures.curves([LINE], LABELS, STYLE))
    assert pyplot.get_fignums() == []


def test_curves_show_their_numbers():
    other = Curve("A2C-logs", np.array([2e5]), np.array([3.0]))
    (axes,) = drawn(figures.curves([LINE, other], LABELS, STYLE, order=["A2C-logs", "PPO-logs"], million=True))
    first, second = axes.lines
    np.testing.assert_allclose(first.get_xdata(), X / 10)
    np.testing.assert_allclose(first.get_ydata(), X**2)
    assert (first.get_color(), second.get_color()) == (figures.COLORS[1], figures.COLORS[0])
    assert (first.get_marker(), second.get_marker()) == ("", "o")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["PPO-logs", "A2C-logs"]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == LABELS
    (band,) = axes.collections
    assert band.get_datalim(axes.transData).y1 == pytest.approx(86)


def test_many_curves_are_told_apart():
    lines = [Curve(str(number), X, X + number) for number in range(20)]
    (axes,) = drawn(figures.curves(lines, LABELS, STYLE))
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 20


def test_bars_stand_at_their_environment_as_high_as_the_mean():
    (axes,) = drawn(figures.bars(RESULTS, LABELS, STYLE))
    bars = {(round(patch.get_x() + patch.get_width() / 2, 3)): patch.get_height() for patch in axes.patches}
    assert bars == {-0.2: 2.0, 0.2: 7.0, 1.2: 2.0}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A-v0", "B-v0"]


def test_boxes_are_named_after_environment_and_key():
    (axes,) = drawn(figures.boxes(RESULTS, LABELS, STYLE))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A-v0-x", "A-v0-y", "B-v0-y"]
    assert len(axes.patches) == 3


def test_intervals_stand_side_by_side():
    panels = {"IQM": {"x": Estimate(0.5, 0.2, 0.9), "y": Estimate(1, 0.5, 2)}, "Mean": {"x": Estimate(1, 1, 1)}}
    left, right = drawn(figures.intervals(panels, "Score", STYLE, rule=0.5))
    assert [(patch.get_x(), patch.get_width()) for patch in left.patches] == [(0.2, pytest.approx(0.7)), (0.5, 1.5)]
    assert list(left.lines[0].get_xdata()) == [0.5, 0.5]
    assert (left.get_title(), right.get_title()) == ("IQM", "Mean")
    assert figures.intervals_style(panels, STYLE).figsize[0] > 6.4


@pytest.mark.parametrize(
    ("name", "form", "picture"),
    [
        ("a", None, "a.png"),
        ("a.svg", None, "a.svg"),
        ("a.PDF", None, "a.pdf"),
        ("a.v1", None, "a.v1.png"),
        ("a.png", "pdf", "a.pdf"),
        ("a.npz", "SVG", "a.svg"),
        ("new/a", None, "new/a.png"),
    ],
)
def test_the_format_is_that_of_the_flag_or_of_the_suffix(name, form, picture, tmp_path):
    output = output_files(str(tmp_path / name), "-o", format=form, other=(".npz",))
    assert output.picture == tmp_path / picture
    assert output.further("ALE/Pong v5").name == f"{output.stem.name}_ALE-Pong-v5.{output.format}"
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_cannot_be_written_are_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"-o '.*file' cannot be written"):
        output_files(str(tmp_path / "file" / "a.png"), "-o")
    with pytest.raises(ConfigError, match="is a folder: name a file"):
        output_files(f"{tmp_path}/", "-o")
    with pytest.raises(ConfigError, match=r"unknown format 'gif' \(--format\): known: pdf, png, svg"):
        output_files(str(tmp_path / "a"), "-o", format="gif")
    (tmp_path / "a.png").mkdir()
    with pytest.raises(ConfigError, match=r"a\.png cannot be drawn") as caught:
        write_picture(tmp_path / "a.png", STYLE, figures.curves([LINE], LABELS, STYLE))
    assert "\n" not in str(caught.value)


def test_what_a_style_lacks_is_told(monkeypatch):
    STYLE.check()
    with pytest.raises(ConfigError, match="did you mean 'upper left'"):
        Style(legend_loc="uper left").check()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="--latex needs a LaTeX installation: there is no program latex"):
        Style(latex=True).check()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"matplotlib.*pip install 'lit-sb3-ray\[plots\]'"):
        STYLE.check()


def test_a_size_in_pixels_is_told_and_not_drawn(tmp_path):
    wide = Style(figsize=(640, 480))
    draw = figures.curves([LINE], LABELS, wide)
    with pytest.raises(ConfigError, match=r"640 x 480 inches would be 76,800 x 57,600 pixels; give a smaller --figsize"):
        write_picture(tmp_path / "a.png", wide, draw)
    assert list(tmp_path.iterdir()) == []
    assert_drawn(write_picture(tmp_path / "a.svg", wide, draw))


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_what_breaks_in_the_middle_leaves_nothing_and_the_old_picture(form, tmp_path):
    path = tmp_path / f"a.{form}"
    path.write_text("older")
    broken = Curve("$x_{$", X, X)
    with pytest.raises(ConfigError, match=r"a\.\w+ cannot be drawn: ") as caught:
        write_picture(path, STYLE, figures.curves([broken], LABELS, STYLE))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "older"


def test_names_too_long_for_a_file_and_pictures_too_small_are_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be drawn: .*too long"):
        write_picture(tmp_path / ("n" * 300 + ".png"), STYLE, figures.curves([LINE], LABELS, STYLE))
    for size in ((0.001, 3), (3, 0.4)):
        with pytest.raises(ConfigError, match=r"--figsize .*: 0\.5 inches at least"):
            Style(figsize=size).check()
