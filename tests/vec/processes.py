"""Looking at processes, sockets and memory, and waiting for them without sleeping through."""

from __future__ import annotations

import os
import select
from pathlib import Path


def is_running(pid):
    """Whether a process exists and has not ended yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def ended_within(pid, seconds):
    """Waits for a process to end; returns whether it did."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def our_sockets(*pids):
    """Names of the sockets that RayVecEnvs use in some processes, by default in all."""
    held = {link for pid in pids for link in _links(pid)}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {
        line[7]
        for line in lines
        if len(line) > 7 and "lit_sb3_ray-" in line[7] and (not pids or f"socket:[{line[6]}]" in held)
    }


def _links(pid):
    """What a process's file descriptors lead to."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield os.readlink(link)
        except FileNotFoundError:
            continue


def open_descriptors():
    """Number of this process's file descriptors."""
    return len(os.listdir("/proc/self/fd"))


def shared_memory():
    """What lies in /dev/shm."""
    return set(os.listdir("/dev/shm"))
