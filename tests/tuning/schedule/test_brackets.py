"""Rungs, and how trials are shared out among brackets."""

from collections import Counter

import pytest

from lit_sb3_ray.tuning.schedule.brackets import hyperband_shares, rungs, turns
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks

MARKS = evaluation_marks(20_000, 10, "asha")


@pytest.mark.parametrize(
    ("marks", "factor", "bracket", "expected"),
    [
        (MARKS, 4, 0, (2000, 8000)),
        (MARKS, 3, 0, (2000, 6000, 18_000)),
        (MARKS, 3, 1, (6000, 18_000)),
        (MARKS, 3, 2, (18_000,)),
        ((199, 399, 599, 799, 999), 4, 0, (199, 799)),  # 4 * 199 falls between two marks.
        ((1000,), 4, 0, ()),  # One evaluation: nothing can be saved.
        ((250, 500, 750, 1000), 4, 0, (250,)),  # The next rung is the budget itself.
    ],
)
def test_rungs_are_marks_below_the_budget(marks, factor, bracket, expected):
    assert rungs(marks, factor, bracket) == expected


def test_hyperband_has_the_papers_brackets():
    marks = evaluation_marks(81, 81, "hyperband")
    assert hyperband_shares(marks, 3) == (81, 34, 15, 8, 5)
    assert hyperband_shares(evaluation_marks(1000, 5, "hyperband"), 3) == (3, 2)
    assert hyperband_shares((1000,), 3) == (1,)


@pytest.mark.parametrize("shares", [(3, 2), (27, 12, 6, 4), (1,)])
def test_brackets_take_turns_evenly_from_the_first_trials_on(shares):
    total = sum(shares)
    for seed in range(5):
        order = turns(shares, seed) * 3
        assert Counter(order[:total]) == {bracket: share for bracket, share in enumerate(shares)}
        for count in range(1, len(order) + 1):
            seen = Counter(order[:count])
            assert all(abs(seen[bracket] - count * share / total) < 2 for bracket, share in enumerate(shares))


def test_the_seed_says_where_the_turns_begin():
    orders = [turns((27, 12, 6, 4), seed) for seed in range(8)]
    assert orders == [turns((27, 12, 6, 4), seed) for seed in range(8)]
    assert len(set(orders)) > 1
