"""One Ray for all tests that need one, and the log's level as each test found it."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile

import pytest

# Ray's folder, where it notes its cluster, is this process's own: tests that run at once do not find each other's Ray.
# Its sockets need a short path.
FOLDER = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="r", dir="/tmp")


def pytest_unconfigure():
    """Removes Ray's folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture(autouse=True)
def log_level():
    """Undoes what a command that ran in this process set the log's level to."""
    package = logging.getLogger("lit_sb3_ray")
    before = package.level
    yield
    package.setLevel(before)


@pytest.fixture(scope="session")
def ray_instance():
    """Starts a small Ray, without a token in the home folder, and ends it."""
    import ray

    before = os.environ.get("RAY_AUTH_MODE")
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(address="local", num_cpus=4, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    yield
    ray.shutdown()
    if before is None:
        del os.environ["RAY_AUTH_MODE"]
    else:
        os.environ["RAY_AUTH_MODE"] = before
