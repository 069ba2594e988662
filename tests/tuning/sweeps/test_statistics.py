"""Figures over seeds: by hand, against every possible resample, and honest about few values."""

import itertools

import numpy as np
import pytest

from lit_sb3_ray.tuning.sweeps.statistics import Interval, interquartile_mean, mean_figure, summarize


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0], 3.0),
        ([1.0, 2.0, 9.0], 4.0),  # of three none is left out
        ([100.0, 1.0, 2.0, -50.0], 1.5),
        ([0.0, 1.0, 2.0, 3.0, 100.0], 2.0),
        ([0, 0, 1, 2, 3, 4, 90, 90], 2.5),
    ],
)
def test_the_interquartile_mean_leaves_a_quarter_out_at_each_end(values, expected):
    assert interquartile_mean(np.array(values, dtype=float)) == pytest.approx(expected)


def test_a_summary_by_hand():
    found = summarize([[4.0, 1.0, 2.0, 3.0, 100.0]])
    assert found.count == 5
    assert found.mean.value == pytest.approx(22.0)
    assert found.median.value == 3.0
    assert found.iqm.value == 3.0
    assert found.std == pytest.approx(np.std([4, 1, 2, 3, 100], ddof=1))
    assert str(found.median) == f"3.00 [{found.median.interval.low:.2f}, {found.median.interval.high:.2f}]"


def test_intervals_are_the_percentiles_of_all_resamples():
    values = [1.0, 5.0, 6.0, 20.0]
    every = np.array(list(itertools.product(values, repeat=4)))
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        low, high = np.quantile(statistic(every, axis=1), [0.025, 0.975])
        found = getattr(summarize([values], resamples=200_000), name).interval
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.3)


def test_strata_are_resampled_each_by_itself():
    # Two environments of different scale, without spread in either: nothing is uncertain.
    found = summarize([[1.0, 1.0], [100.0, 100.0]])
    assert found.mean.interval == Interval(50.5, 50.5)
    assert summarize([[1.0, 1.0, 100.0, 100.0]]).mean.interval.low < 50


def test_few_values():
    one, two, three = (summarize([values]) for values in ([5.0], [5.0, 7.0], [5.0, 7.0, 9.0]))
    assert (one.mean.value, one.mean.interval, one.std) == (5.0, None, None)
    assert (two.mean.value, two.iqm.value, two.mean.interval, two.std) == (6.0, 6.0, None, pytest.approx(2**0.5))
    assert (three.mean.interval.low, three.mean.interval.high) == (5.0, 9.0)
    assert str(one.mean) == "5.00"
    assert summarize([[2.0] * 3]).iqm.interval == Interval(2.0, 2.0)


def test_a_seed_fixes_the_intervals():
    values = list(np.random.default_rng(0).normal(size=7))
    assert summarize([values]) == summarize([values])
    assert summarize([values], seed=1).mean.interval != summarize([values]).mean.interval
    assert mean_figure(values) == mean_figure(values)


def test_a_wider_confidence_is_a_wider_interval():
    values = list(range(10))
    wide, narrow = (summarize([values], confidence=part).mean.interval for part in (0.99, 0.5))
    assert wide.low < narrow.low < 4.5 < narrow.high < wide.high


@pytest.mark.parametrize("strata", [[], [[]], [[1.0, float("nan")]], [[float("inf")]]])
def test_nothing_and_what_is_not_finite_is_refused(strata):
    with pytest.raises(ValueError, match="summari"):
        summarize(strata)
