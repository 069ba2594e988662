"""A study whose trials are on several nodes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_trial_of_a_lost_node_goes_on_from_its_checkpoint_on_another(tmp_path):
    """Its evaluations are those of the other trial, which has the same parameters and was left in peace."""
    script = Path(__file__).with_name("study_nodes_process.py")
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        process = subprocess.run(
            [sys.executable, str(script), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "RAY_TMPDIR": folder},
            cwd=folder,
            timeout=280,
        )
    assert process.returncode == 0
    found = json.loads(process.stdout.splitlines()[-1])
    (state, first), (other, second) = found["rows"]
    assert state == other == "COMPLETE"
    assert [mark for mark, _ in first] == [20, 40, 60, 80, 100]
    assert first == second
    assert sorted(found["processes"]) == [1, 2]
