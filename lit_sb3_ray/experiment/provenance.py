"""Where a run came from: versions, git state, seed, machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = (
    "lit-sb3-ray",
    "stable-baselines3",
    "sb3-contrib",
    "gymnasium",
    "torch",
    "pytorch-lightning",
    "numpy",
    "ray",
    "optuna",
)


def provenance(seed: int, device: str, num_threads: int) -> dict[str, Any]:
    """Collects where a run comes from.

    Args:
        seed: The run's seed.
        device: The device it trains on.
        num_threads: torch's threads.

    Returns:
        Plain values for `provenance.yml`.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "versions": {"python": platform.python_version(), **_versions()},
        "git": _git(),
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "cpus": os.cpu_count(),
            "device": device,
            "threads": num_threads,
        },
        "argv": list(sys.argv),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git() -> dict[str, Any] | None:
    """Commit and cleanness of the working folder's repository; None outside one or without git."""
    commands = {"commit": ["git", "rev-parse", "HEAD"], "status": ["git", "status", "--porcelain"]}
    told = {}
    for name, command in commands.items():
        try:
            told[name] = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None
    return {"commit": told["commit"], "clean": not told["status"]}
