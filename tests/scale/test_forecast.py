"""What a Ray that is still to be started will have, and that this is known before it is."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lit_sb3_ray.scale.forecast import coming_nodes
from lit_sb3_ray.scale.ray_settings import RaySettings

COMPARED = """
import json
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.forecast import coming_nodes
from lit_sb3_ray.scale.nodes import node_resources
from lit_sb3_ray.scale.ray_settings import RaySettings
settings = RaySettings(address="local")
before = coming_nodes(settings)
given = coming_nodes(RaySettings(address="local", num_cpus=7, num_gpus=3))
connect(settings)
print(json.dumps([before, given, node_resources(), coming_nodes(settings)]))
"""


def environment():
    found = {**os.environ, "RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(Path(__file__).parents[2])}
    found.pop("RAY_ADDRESS", None)
    return found


@pytest.mark.slow
def test_it_is_what_there_is_afterwards(tmp_path):
    words = [sys.executable, "-c", COMPARED]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, timeout=240, check=True)
    (before,), (given,), (after,), connected = json.loads(done.stdout.splitlines()[-1])
    assert before["CPU"] == after["CPU"] >= 1
    assert before.get("GPU", 0) == after.get("GPU", 0)
    assert (given["CPU"], given["GPU"]) == (7, 3)
    assert connected is None


def test_a_ray_that_is_there_has_what_it_has(ray_instance, monkeypatch):
    assert coming_nodes() is None
    assert coming_nodes(RaySettings(address="10.0.0.1:6379")) is None


@pytest.mark.parametrize("words", [["tune", "--cpus-per-trial", "4096"], ["sweep", "--cpus-per-run", "4096", "--seeds", "1"]])
def test_what_can_never_be_met_is_refused_without_starting_ray(words, tmp_path):
    """One line: Ray says several as it starts. On a machine that runs Ray, that one is asked."""
    command = [sys.executable, "-m", "lit_sb3_ray", *words, "--device", "cpu", "--verbose", "0", "--ray-address", "local"]
    begun = time.monotonic()
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("lit-sb3-ray: error: a ")
    assert "4096 CPU" in line
    assert time.monotonic() - begun < 120
    assert list(tmp_path.iterdir()) == []
