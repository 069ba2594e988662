"""A study whose trials are on several nodes."""

from pathlib import Path

import pytest
from own_cluster import run_with_cluster


@pytest.mark.slow
def test_the_trial_of_a_lost_node_goes_on_from_its_checkpoint_on_another(tmp_path):
    """Its evaluations are those of the other trial, which has the same parameters and was left in peace.

    The lost node comes when the study has begun, and then takes the second trial: nobody has said how many at once.
    """
    found = run_with_cluster(Path(__file__).with_name("study_nodes_process.py"), tmp_path)
    (state, first), (other, second) = found["rows"]
    assert state == other == "COMPLETE"
    assert [mark for mark, _ in first] == [20, 40, 60, 80, 100]
    assert first == second
    assert sorted(found["processes"]) == [1, 2]
