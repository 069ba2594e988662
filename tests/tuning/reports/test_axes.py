"""Axes hold what they are given, whatever the numbers."""

import pytest

from lit_sb3_ray.tuning.reports.axes import category_axis, number_axis, shortened, usual

CASES = [
    [],
    [0.0],
    [3.0, 3.0],
    [0.0, 5e-324],
    [1e8, 1e8 + 1e-8],
    [-1e100, 1e100],
    [-5.0, 2.0, 7.5],
    [1e-5, 2e-3],
    [1e-120, 1e100],
]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", CASES)
def test_numbers_and_ticks_lie_within(values, log):
    axis = number_axis("x", values, log=log)
    assert axis.low < axis.high
    assert all(0 <= axis.place(value) <= 1 for value in values)
    assert all(axis.low <= tick <= axis.high for tick, _ in axis.ticks)
    assert 1 <= len(axis.ticks) <= 9


def test_ticks_are_round_numbers():
    assert [word for _, word in number_axis("x", [0, 10000], short=True).ticks] == ["0", "2k", "4k", "6k", "8k", "10k"]
    assert [word for _, word in number_axis("x", [1e-5, 1e-2], log=True).ticks] == ["1e-05", "0.0001", "0.001", "0.01"]
    assert [word for _, word in number_axis("x", [2e-3, 9e-3], log=True).ticks] == ["0.002", "0.005"]
    assert shortened(1.5e6) == "1.5M"


def test_a_log_axis_needs_numbers_above_zero():
    assert not number_axis("x", [0.0, 1.0], log=True).log
    axis = number_axis("x", [1e-4, 1.0], log=True)
    assert axis.place(1e-2) == pytest.approx(0.5)


def test_a_diverged_trial_does_not_squash_the_others():
    values = [float(value) for value in range(100, 130)]
    assert usual([*values, -1e9], maximize=True) == values
    assert sorted(usual([*values, 1e9], maximize=False)) == values
    assert usual(values, maximize=True) == values
    assert usual([5.0] * 20 + [1.0], maximize=True)[0] == 1.0


def test_of_many_categories_some_are_named():
    axis = category_axis("x", [f"name{number}" for number in range(40)])
    assert len(axis.ticks) == 8
    assert axis.ticks[1] == (5.0, "name5")
    assert category_axis("x", []).low < category_axis("x", []).high
