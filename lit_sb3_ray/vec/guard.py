"""The guard of an actor: a small process that outlives it and ends what its environments have left running.

An environment may start processes of its own (a simulator, a server). Whatever ends the actor, on whatever node, its guard
notices and ends them. This file is also run by itself, so it imports nothing of the package.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

# A variable in the environment of everything that an actor starts: its value tells which actor.
MARK = "LIT_SB3_RAY_ACTOR"
_LOOK_S = 0.2
_SWEEPS = 20


def start_guard(mark: str) -> int:
    """Starts the guard of this process, which must lead a process group.

    Args:
        mark: What `MARK` is in the environment of the processes that this one starts.

    Returns:
        The guard's process id.
    """
    guard = subprocess.run(
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), mark],
        env={name: value for name, value in os.environ.items() if name != MARK},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return int(guard.stdout)


def main() -> None:
    """Waits for the end of the process named first, then ends its group and all that bear the mark named second."""
    leader, mark = int(sys.argv[1]), sys.argv[2]
    end = os.pidfd_open(leader) if hasattr(os, "pidfd_open") else None
    # Ray ends the children of its workers with them, so the guard must not be one.
    pid = os.fork()
    if pid:
        print(pid)
        return
    os.dup2(os.open(os.devnull, os.O_RDWR), sys.stdout.fileno())
    if end is not None:
        select.select([end], [], [])
    while end is None and _exists(leader):
        time.sleep(_LOOK_S)
    for _ in range(_SWEEPS):  # those that are about to end may still start others
        if not _sweep(leader, mark):
            break
        time.sleep(_LOOK_S / 20)


def _sweep(leader: int, mark: str) -> bool:
    """Kills what is left; returns whether there was any."""
    found = False
    try:
        os.killpg(leader, signal.SIGKILL)
        found = True
    except (ProcessLookupError, PermissionError):
        pass
    for pid in _marked(f"{MARK}={mark}".encode()):
        try:
            os.kill(pid, signal.SIGKILL)
            found = True
        except ProcessLookupError:
            pass
    return found


def _marked(entry: bytes) -> Iterator[int]:
    """Finds running processes by an entry of their environment, where the system tells."""
    if not os.path.isdir("/proc/self"):
        return
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                entries = file.read().split(b"\0")
        except OSError:  # it has ended, or belongs to somebody else
            continue
        if entry in entries:
            yield int(name)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
