"""A cluster that may grow is told from one that may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_cluster import run_with_cluster

from lit_sb3_ray.scale.autoscaling import may_grow


@pytest.mark.usefixtures("ray_instance")
def test_a_ray_of_this_machine_cannot_grow():
    assert not may_grow()


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["v1", "v2"])
def test_a_cluster_with_an_autoscaler_is_asked_for_more_than_it_has(generation):
    found = run_with_cluster(Path(__file__).with_name("growing_cluster_process.py"), generation)
    assert found == {"grows": True, "has": 1.0, "granted": 1.0}
