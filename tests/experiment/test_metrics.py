"""`metrics.csv`: a row an env step, a column a metric, whole at every moment."""

from __future__ import annotations

import csv

import numpy as np
import torch
from stable_baselines3.common.logger import Image

from lit_sb3_ray.experiment.metrics import MetricsFile, cut_metrics, read_rows


def write(file, step, excluded=None, **values):
    file.write(values, {name: (excluded or {}).get(name) for name in values}, step)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_metric_that_comes_later_gets_a_column_and_the_rows_before_it_stay(tmp_path):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    write(file, 10, b=1.5, a=2)
    write(file, 20, a=3, b=2.5)
    write(file, 30, c=np.float32(0.25))
    write(file, 40, a=5)
    assert path.read_text().splitlines() == ["step,a,b,c", "10,2,1.5,", "20,3,2.5,", "30,,,0.25", "40,5,,"]


def test_a_file_is_continued(tmp_path):
    path = tmp_path / "metrics.csv"
    write(MetricsFile(path), 10, a=1)
    file = MetricsFile(path)
    write(file, 20, a=2)
    write(file, 30, b=3)
    assert [(row["step"], row["a"], row["b"]) for row in rows(path)] == [("10", "1", ""), ("20", "2", ""), ("30", "", "3")]


def test_what_is_no_number_or_meant_for_elsewhere_is_left_out(tmp_path):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    picture, excluded = Image(np.zeros((2, 2, 3), np.uint8), "HWC"), {"secret": ("csv",), "shown": ("stdout",)}
    write(file, 10, excluded, a=1.0, text="x", picture=picture, weights=torch.ones(2), secret=1, shown=2)
    write(file, 20, excluded, secret=2)
    assert path.read_text().splitlines() == ["step,a,shown", "10,1.0,2"]


def test_a_new_column_never_leaves_half_a_file(tmp_path):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    write(file, 10, a=1)
    before = path.stat().st_ino
    write(file, 20, b=1)
    # The whole file was written beside the old one and took its name.
    assert path.stat().st_ino != before
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.csv"]


def test_rows_later_than_a_step_are_cut_and_a_row_cut_short_by_a_crash_too(tmp_path):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    for step in (10, 20, 30):
        write(file, step, a=step)
    with path.open("a") as half:
        half.write("1")
    cut_metrics(path, 20)
    assert read_rows(path) == (["step", "a"], [{"step": "10", "a": "10"}, {"step": "20", "a": "20"}])
    cut_metrics(tmp_path / "none.csv", 20)
    assert not (tmp_path / "none.csv").exists()
