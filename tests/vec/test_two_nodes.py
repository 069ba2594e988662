"""Environments on two nodes of a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.mark.slow
def test_environments_of_two_nodes_step_as_dummy_does_and_survive_the_loss_of_a_node():
    """Also case A7, that what fits one node stays there, and that nothing stays on the other one when its actors end."""
    script = Path(__file__).with_name("two_nodes_process.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        process = subprocess.run(
            [sys.executable, str(script)],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "RAY_TMPDIR": folder},
            cwd=folder,
            timeout=200,
        )
    assert process.returncode == 0
    found = json.loads(process.stdout.splitlines()[-1])
    # Two actors with a CPU each, and one that has half of eight environments: all stay on the learner's node.
    assert found["where there is room"] == ["shared memory"] * 3
    assert sorted(found["paths"]) == ["actor calls"] * 2 + ["shared memory"] * 2
    assert found["children left"] == []
    assert len(found["restarted"]) == 2
