"""A cluster that may grow is told from one that may not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lit_sb3_ray.scale.autoscaling import may_grow


@pytest.mark.usefixtures("ray_instance")
def test_a_ray_of_this_machine_cannot_grow():
    assert not may_grow()


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["v1", "v2"])
def test_a_cluster_with_an_autoscaler_is_asked_for_more_than_it_has(generation):
    script = Path(__file__).with_name("growing_cluster_process.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        process = subprocess.run(
            [sys.executable, str(script), generation],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "RAY_TMPDIR": folder},
            cwd=folder,
            timeout=240,
        )
    assert process.returncode == 0
    assert json.loads(process.stdout.splitlines()[-1]) == {"grows": True, "has": 1.0, "granted": 1.0}
