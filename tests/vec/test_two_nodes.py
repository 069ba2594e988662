"""Environments on two nodes of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_cluster import run_with_cluster


@pytest.mark.slow
def test_environments_of_two_nodes_step_as_dummy_does_and_survive_the_loss_of_a_node():
    """Also case A7, that what fits one node stays there, and that nothing stays on the other one when its actors end."""
    found = run_with_cluster(Path(__file__).with_name("two_nodes_process.py"))
    # Two actors with a CPU each, and one that has half of eight environments: all stay on the learner's node.
    assert found["where there is room"] == ["shared memory"] * 3
    assert sorted(found["paths"]) == ["actor calls"] * 2 + ["shared memory"] * 2
    assert found["children left"] == []
    assert len(found["restarted"]) == 2
