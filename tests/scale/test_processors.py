"""How many processors this process may keep busy."""

from __future__ import annotations

import os

import pytest

from lit_sb3_ray.scale import processors


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [("max 100000", None), ("150000 100000", 1), ("50000 100000", 1), ("100000000 100000", None), ("nonsense", None)],
)
def test_a_container_s_quota_counts(quota, cpus, tmp_path, monkeypatch):
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    monkeypatch.setattr(processors, "_QUOTA", file)
    assert processors.usable_cpus() == (cpus or len(os.sched_getaffinity(0)))


def test_without_a_quota_the_processors_it_may_run_on_count(tmp_path, monkeypatch):
    monkeypatch.setattr(processors, "_QUOTA", tmp_path / "missing")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert processors.usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert processors.usable_cpus() == len(allowed)
