"""Learners on several nodes."""

from pathlib import Path

import pytest
from own_cluster import run_with_cluster


@pytest.mark.slow
def test_learners_of_two_nodes_train_together_and_a_lost_node_ends_the_run(tmp_path):
    found = run_with_cluster(Path(__file__).with_name("learner_nodes_process.py"), tmp_path)
    assert found["steps"] == 256
    # They meet at the address of the first one's node, which the other reaches, and not at the loopback's.
    assert found["met"]
    assert all(host != "127.0.0.1" for _, host in found["met"])
    assert "learner 1" in found["lost"] or "another learner is gone" in found["lost"]
    assert "Go on with: lit-sb3-ray train --resume" in found["lost"]
