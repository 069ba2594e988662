"""Numbers are recognised however files write them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lit_sb3_ray.config.numerals import to_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (1.5, 1.5),
        ("1e-3", 1e-3),
        ("1_000_000", 1_000_000),
        ("-7", -7),
        (".5", 0.5),
        ("5.", 5.0),
        ("1E6", 1e6),
        (".inf", math.inf),
        ("-inf", -math.inf),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
    ],
)
def test_numbers(value, expected):
    number = to_number(value)
    assert number == expected
    assert type(number) is type(expected)


@pytest.mark.parametrize("value", [True, None, "auto", "", "1e", "lin_1", "12:30", "1.2.3", "--1", "e5", "_1", "1" * 65, [1]])
def test_no_numbers(value):
    assert to_number(value) is None
