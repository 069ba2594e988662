"""Processors that environments may use. Nothing here needs Ray."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True)
class Cores:
    """Processors for environments.

    Attributes:
        here: On this node, the learner's own among them.
        elsewhere: On the other nodes of the cluster.
    """

    here: int
    elsewhere: int = 0

    def shared(self, learners: int) -> Cores:
        """What one of some learners has of them, as if all were on this node."""
        return self if learners == 1 else Cores(max(1, self.here // learners), self.elsewhere // learners)


def usable_cpus() -> int:
    """Counts the processors that this process may keep busy: those it may run on, or fewer by a container's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def _quota() -> float | None:
    """Reads how many processors' worth of time the control group of this process may use; None for any."""
    try:
        share, period = _QUOTA.read_text().split()
    except (OSError, ValueError):
        return None
    return None if share == "max" else int(share) / int(period)
