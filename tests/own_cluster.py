"""Running a script that makes a Ray cluster of its own, apart from the session's Ray."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run_with_cluster(script, *arguments):
    """Runs a script, which must succeed, and returns what its last line says in JSON.

    Args:
        script: The script; modules of the tests can be imported in it.
        *arguments: Its arguments.
    """
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        process = subprocess.run(
            [sys.executable, str(script), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "RAY_TMPDIR": folder},
            cwd=folder,
            timeout=280,
        )
    assert process.returncode == 0
    return json.loads(process.stdout.splitlines()[-1])
