"""A sweep whose runs are on several nodes."""

from pathlib import Path

import pytest
from own_cluster import run_with_cluster


@pytest.mark.slow
def test_runs_of_a_lost_node_go_on_from_their_checkpoints_on_another(tmp_path):
    found = run_with_cluster(Path(__file__).with_name("sweep_nodes_process.py"), tmp_path / "s")
    assert found["lost"]
    assert [row[:2] for row in found["rows"]] == [["done", 160]] * 2
    assert sorted(row[2] for row in found["rows"]) == [0, 1]
    assert found["resumed"] == 1
    assert sum("its process is lost; started again" in line for line in found["lines"]) == 1
