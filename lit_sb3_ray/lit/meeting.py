"""Where learners that train one model together meet, and the groups they come to there.

The groups are made here from torch's parts, and not by `init_process_group`: there is one of those a process, and a process
may train one run after another.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torch import distributed

# Its parts are re-exported without saying so, which strict typing refuses by name.
dist: Any = distributed

# For all learners to meet, once each of them has said that it is there.
_MEETING = timedelta(seconds=120)
# Between two looks whether all are there, in seconds.
_PAUSE_S = 0.025


@dataclass(frozen=True)
class Meeting:
    """Where learners meet, and who one of them is.

    Attributes:
        rank: The learner's number; 0 leads.
        size: How many learners there are.
        host: Address of the first learner.
        port: Its port.
        own_host: Address at which the others reach this learner.
        on_gpus: Whether each learner has a GPU of its own, so that gradients go from one to another by NCCL.
    """

    rank: int
    size: int
    host: str
    port: int
    own_host: str
    on_gpus: bool = False


def open_meeting(host: str) -> tuple[Any, int]:
    """Opens the place where learners meet; in the first learner.

    Args:
        host: The address to listen at; the loopback's keeps other machines out.

    Returns:
        The place, and its port.
    """
    listening = socket.create_server((host, 0))
    port: int = listening.getsockname()[1]
    options: dict[str, Any] = {"is_master": True, "wait_for_workers": False, "timeout": _MEETING}
    return dist.TCPStore(host, port, master_listen_fd=listening.detach(), **options), port


def visit(meeting: Meeting) -> Any:
    """Goes to the place where learners meet; in a learner that is not the first.

    Args:
        meeting: Where it is.

    Returns:
        The place, through a connection of its own.
    """
    return dist.TCPStore(meeting.host, meeting.port, is_master=False, timeout=_MEETING)


def await_all(meeting: Meeting, store: Any, look_around: Callable[[], None]) -> None:
    """Waits until all learners are there; torch itself would wait for a certain time, and for one that has died, too.

    Args:
        meeting: Who this one is.
        store: The place.
        look_around: Called again and again; what it raises ends the wait.
    """
    if meeting.rank == 0:
        awaited = [f"here/{rank}" for rank in range(1, meeting.size)]
    else:
        store.set(f"here/{meeting.rank}", "1")
        awaited = ["all"]
    pause = threading.Event()
    while not store.check(awaited):
        look_around()
        pause.wait(_PAUSE_S)
    if meeting.rank == 0:
        store.set("all", "1")


def gloo(name: str, store: Any, meeting: Meeting) -> Any:
    """A group for what is in the CPU's memory.

    Args:
        name: The group's.
        store: The place where its members find each other.
        meeting: Who this one is.
    """
    kind: Any = dist.ProcessGroupGloo
    options = kind._Options()
    options._timeout = _MEETING
    options._devices = [kind.create_device(hostname=meeting.own_host)]
    return kind(dist.PrefixStore(name, store), meeting.rank, meeting.size, options)


def nccl(name: str, store: Any, meeting: Meeting) -> Any:
    """A group for what is in GPUs' memories; the arguments are `gloo`'s."""
    kind: Any = dist.ProcessGroupNCCL
    return kind(dist.PrefixStore(name, store), meeting.rank, meeting.size, kind.Options())
