"""A sweep whose runs are on several nodes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.mark.slow
def test_runs_of_a_lost_node_go_on_from_their_checkpoints_on_another(tmp_path):
    script = Path(__file__).with_name("sweep_nodes_process.py")
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        process = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "s")],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "RAY_TMPDIR": folder},
            cwd=folder,
            timeout=250,
        )
    assert process.returncode == 0
    found = json.loads(process.stdout.splitlines()[-1])
    assert found["lost"]
    assert [row[:2] for row in found["rows"]] == [["done", 160]] * 2
    assert sorted(row[2] for row in found["rows"]) == [0, 1]
    assert found["resumed"] == 1
    assert sum("its process is lost; started again" in line for line in found["lines"]) == 1
