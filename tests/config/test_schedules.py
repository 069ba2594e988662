"""Schedules follow the documented grammar (case G4), equal rl_zoo3's bit for bit, and can be pickled."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import pytest
from stable_baselines3.common.utils import FloatSchedule

from lit_sb3_ray.config.schedules import CosineSchedule, LinearSchedule, parse_schedule
from lit_sb3_ray.errors import ConfigError

PROGRESS = [1.0, 0.9999, 0.7, 1 / 3, 0.1, 1e-7, 0.0]
STARTS = ["0.001", "7.3e-4", "2.5e-4", "0.4", "1e-3"]


def test_linear_schedules_and_numbers_equal_the_peer_bit_for_bit():
    code = (
        f"from rl_zoo3.exp_manager import ExperimentManager as E\nfor s in {STARTS}:\n"
        "    for v in ('lin_' + s, float(s)):\n"
        f"        f = E._preprocess_schedules({{'learning_rate': v}})['learning_rate']\n"
        f"        print([f(p).hex() for p in {PROGRESS}])"
    )
    expected = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()
    values = [value for start in STARTS for value in (f"lin_{start}", float(start))]
    ours = [FloatSchedule(parse_schedule(value, "learning_rate")) for value in values]
    assert [str([schedule(p).hex() for p in PROGRESS]) for schedule in ours] == expected


def test_end_values_are_supported():
    schedule = parse_schedule("lin_1e-3_1e-5", "learning_rate")
    assert schedule(1.0) == 1e-3
    assert schedule(0.0) == 1e-5
    assert schedule(0.5) == pytest.approx(5.05e-4)
    assert parse_schedule("cos_1e-3_1e-5", "k")(0.5) == pytest.approx(5.05e-4)
    assert parse_schedule("cos_0.2", "k")(0.25) == pytest.approx(0.1 * (1 - math.cos(math.pi / 4)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.5, 0.5),
        (1, 1.0),
        ("1e-3", 1e-3),
        (-1, -1),
        (None, None),
        ({"kind": "constant", "value": "1e-3"}, 1e-3),
        ({"kind": "linear", "start": 1, "end": 0.1}, LinearSchedule(1.0, 0.1)),
        ({"kind": "lin", "start": "1e-3"}, LinearSchedule(1e-3)),
        ({"kind": "cosine", "start": 0.1}, CosineSchedule(0.1)),
        (abs, abs),
    ],
)
def test_reads_numbers_mappings_and_callables(value, expected):
    assert parse_schedule(value, "clip_range_vf", optional=True) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("exp_0.001", "unknown schedule kind 'exp'.*learning_rate, x.yml.*cos, lin"),
        ("linn_0.001", "did you mean 'lin'"),
        ("lin", "lin_START"),
        ("lin_1_2_3", "lin_START_END"),
        ("lin_fast", "'fast'"),
        ("lin_-1", "from 0 up"),
        ("lin_nan", "finite"),
        (None, "not None"),
        (True, "not True"),
        ([1], "not \\[1\\]"),
        (int, "not <class"),
        (float("nan"), "nan"),
        ({"start": 1}, "unknown schedule kind"),
        ({"kind": "linear"}, "needs 'start'"),
        ({"kind": "linear", "start": 1, "finish": 0}, "unknown field of a linear schedule 'finish'"),
    ],
)
def test_names_what_is_wrong_with_a_schedule(value, message):
    with pytest.raises(ConfigError, match=message):
        parse_schedule(value, "learning_rate, x.yml")


def test_schedules_are_picklable_values():
    for text in ("lin_0.001", "cos_0.1_0.01"):
        schedule = parse_schedule(text, "k")
        assert pickle.loads(pickle.dumps(schedule)) == schedule
