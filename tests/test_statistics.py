"""Figures over seeds: by hand, against every possible resample, and honest about few values."""

import itertools

import numpy as np
import pytest

from lit_sb3_ray.statistics import Interval, bootstrap, interquartile_mean, mean_figure, summarize


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


def test_runs_are_drawn_again_in_each_environment_by_itself():
    # Of two runs each resample has one of four pairs, in each environment another: all means of both there are.
    sample = np.array([[0.0, 10.0], [2.0, 30.0]])
    seen = set()

    def note(drawn):
        seen.add(tuple(map(tuple, np.sort(drawn, axis=0))))
        return drawn.mean(axis=0)

    low, high = bootstrap(note, sample, confidence=1 - 1e-9, resamples=500)
    assert len(seen) == 9
    assert {value for drawn in seen for value in (drawn[0][0], drawn[1][0])} == {0.0, 2.0}
    assert (low.tolist(), high.tolist()) == ([0.0, 10.0], pytest.approx([2.0, 30.0]))


def test_what_belongs_to_a_run_stays_with_it():
    runs = np.arange(4.0)[:, None, None] * np.array([1.0, 10.0])
    low, high = bootstrap(lambda drawn: drawn.mean(axis=(0, 1)), runs)
    assert low[1] == pytest.approx(10 * low[0])
    assert high[1] == pytest.approx(10 * high[0])


def test_two_samples_are_drawn_again_independently_and_a_seed_fixes_them():
    one, other = np.arange(5.0)[:, None], np.arange(5.0)[:, None]
    low, high = bootstrap(lambda x, y: float((x - y).mean()), one, other)
    assert low < 0 < high
    assert bootstrap(lambda x, y: float((x - y).mean()), one, other) == (low, high)
