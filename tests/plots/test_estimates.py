"""What rliable computes, against a direct computation; the same each time, and numpy's generator left alone."""

import importlib.util
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from lit_sb3_ray.config.problems import MissingPackageError
from lit_sb3_ray.plots.estimates import (
    aggregate_metrics,
    check_rliable,
    performance_profiles,
    probabilities_of_improvement,
    sample_efficiency,
)

GENERATOR = np.random.default_rng(3)
SCORES = {"x": GENERATOR.normal(0.6, 0.3, (5, 3)), "y": GENERATOR.normal(0.4, 0.3, (8, 3))}


def middle_half(values):
    ordered = np.sort(np.ravel(values))
    cut = len(ordered) // 4
    return ordered[cut : len(ordered) - cut].mean()


DIRECT = {
    "Median": lambda scores: np.median(scores.mean(axis=0)),
    "IQM": middle_half,
    "Mean": np.mean,
    "Optimality Gap": lambda scores: np.maximum(1 - scores, 0).mean(),
}


def resampled(scores, generator):
    """Draws the runs again within each environment."""
    return np.stack([column[generator.integers(0, len(column), len(column))] for column in scores.T], axis=1)


def interval(scores, function, confidence=0.95, resamples=2000):
    generator = np.random.default_rng(17)
    values = [function(resampled(scores, generator)) for _ in range(resamples)]
    return np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)


def test_aggregates_and_their_intervals():
    found = aggregate_metrics(SCORES, 0.95)
    assert list(found) == list(DIRECT)
    for name, function in DIRECT.items():
        for key, scores in SCORES.items():
            estimate = found[name][key]
            assert estimate.value == pytest.approx(function(scores))
            assert (estimate.low, estimate.high) == pytest.approx(tuple(interval(scores, function)), abs=0.04)
            assert estimate.low <= estimate.value <= estimate.high
    assert list(aggregate_metrics(SCORES, 0.95, gap=False)) == ["Median", "IQM", "Mean"]


def test_a_smaller_confidence_is_a_narrower_interval():
    wide, narrow = (aggregate_metrics({"x": SCORES["x"]}, size)["IQM"]["x"] for size in (0.95, 0.5))
    assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)


def test_profiles_are_the_parts_of_runs_above_each_threshold():
    thresholds = np.linspace(0, 1.5, 11)
    for curve in performance_profiles(SCORES, thresholds, 0.95):
        scores = SCORES[curve.label]
        np.testing.assert_allclose(curve.y, [(scores > threshold).mean() for threshold in thresholds])
        low, high = interval(scores, lambda drawn: (drawn[..., None] > thresholds).mean(axis=(0, 1)))
        np.testing.assert_allclose(curve.low, low, atol=0.08)
        np.testing.assert_allclose(curve.high, high, atol=0.08)
        assert (curve.low <= curve.y).all()


def test_the_interquartile_mean_is_that_of_rliable_itself():
    from rliable import metrics

    for scores in (*SCORES.values(), SCORES["x"][:1, :1], SCORES["y"][:2]):
        assert aggregate_metrics({"k": scores}, 0.95)["IQM"]["k"].value == pytest.approx(metrics.aggregate_iqm(scores))


def test_nothing_of_rliable_that_needs_arch_is_imported():
    code = "import sys, rliable.metrics, lit_sb3_ray.plots.estimates as e; import numpy as np; s = {'x': np.ones((2, 2))};"
    code += "e.aggregate_metrics(s, 0.9); assert not {'arch', 'rliable.library', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_improvement_is_the_part_of_pairs_of_runs_won():
    scores = {**SCORES, "z": np.ones((2, 3))}
    found = probabilities_of_improvement(scores, 0.95)
    assert list(found) == ["x > y", "x > z", "y > z"]

    def won(first, second):
        columns = zip(first.T, second.T, strict=True)
        return np.mean([np.mean([(a > b) + 0.5 * (a == b) for a, b in product(*column)]) for column in columns])

    for pair, estimate in found.items():
        first, second = pair.split(" > ")
        assert estimate.value == pytest.approx(won(scores[first], scores[second]))
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_sample_efficiency_is_the_iqm_at_each_evaluation():
    cubes = {key: scores[..., None] * np.array([0.1, 0.5, 1.0]) for key, scores in SCORES.items()}
    positions = np.array([1000.0, 5000.0, 9000.0])
    for curve in sample_efficiency(cubes, positions, 0.95):
        assert curve.x is positions
        np.testing.assert_allclose(curve.y, middle_half(SCORES[curve.label]) * np.array([0.1, 0.5, 1.0]))
        low, high = interval(SCORES[curve.label], middle_half)
        assert curve.low[-1] == pytest.approx(low, abs=0.04)
        assert curve.high[-1] == pytest.approx(high, abs=0.04)


def test_the_same_each_time_whatever_numpys_generator_is_at():
    np.random.seed(1)
    before = np.random.get_state()
    first = aggregate_metrics(SCORES, 0.9)
    after = np.random.get_state()
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    np.random.random(100)
    assert aggregate_metrics(SCORES, 0.9) == first


def test_a_single_run_has_an_interval_of_no_width():
    estimate = aggregate_metrics({"x": SCORES["x"][:1]}, 0.95)["Mean"]["x"]
    assert estimate.low == estimate.high == pytest.approx(estimate.value)


def test_without_rliable_the_extra_is_named(monkeypatch):
    check_rliable()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"rliable.*pip install 'lit-sb3-ray\[plots\]'"):
        check_rliable()
