"""A short run of `benchmarks/soak.py`: nothing grows."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def soak(monkeypatch):
    """The benchmark as a module, as the actors import it."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import soak

    yield soak
    del sys.modules["soak"]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_instance")
def test_a_long_run_and_many_openings_keep_nothing(soak):
    steps = soak.trends(soak.step_for_long(4, 40_000, looks=10, envs_per_actor=2))
    openings = soak.trends(soak.open_and_close(2, 6, looks=6, envs_per_actor=1))
    for found in (steps, openings):
        before, after, _ = found["learner MB"]
        assert after - before < 8
        for name in ("object store MB", "/dev/shm entries"):
            before, after, _ = found[name]
            assert after <= before
        # Ray opens descriptors and keeps idle workers of its own, a few.
        assert found["descriptors"][1] <= found["descriptors"][0] + 3
        assert found["processes"][1] <= found["processes"][0] + 4
    before, after, _ = steps["actors MB"]
    assert after - before < 8
