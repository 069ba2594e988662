"""The process of an actor, as the learner sees it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from lit_sb3_ray.scale.resources import Releases
from lit_sb3_ray.vec.actor import Home

_CAUSE_PATIENCE_S = 2.0
_EXIT_PATIENCE_S = 1.0
_KILL_PATIENCE_S = 10.0


class ActorProcess:
    """An actor that was started.

    Args:
        handle: Ray's handle.
        home: Where it lives.
        here: Whether that is this node.
    """

    def __init__(self, handle: Any, home: Home, *, here: bool) -> None:
        self.handle = handle
        self.home = home
        self.here = here
        self._exit = _watch(home.pid) if here else None
        self._guard_exit = _watch(home.guard) if here else None
        self._is_gone = False

    def wait_gone(self, deadline: float) -> bool:
        """Waits until the process has ended; on other nodes, and where the system cannot tell, it only guesses so.

        Args:
            deadline: When to give up, by `time.monotonic`.

        Returns:
            Whether it has ended.
        """
        return _ended(self._exit, deadline)

    def kill(self) -> None:
        """Ends the process and the children of its environments, and waits until all have ended.

        On another node the guard ends the children as soon as Ray has ended the process; neither is waited for. A second time
        does nothing: the process id may be another's by then.
        """
        if self._is_gone:
            return
        # Where Ray was shut down the actor ends with it, and a call would start another Ray.
        if ray.is_initialized():
            with contextlib.suppress(RayError):
                ray.kill(self.handle)
        if self.here:
            # Ray asks the process to end itself, which one that is stopped or stuck may never hear.
            self.wait_gone(time.monotonic() + _EXIT_PATIENCE_S)
            self._signal_group()
            deadline = time.monotonic() + _KILL_PATIENCE_S
            self.wait_gone(deadline)
            _ended(self._guard_exit, deadline)
        Releases.note()
        self.release()

    def release(self) -> None:
        """Gives up what is held for an actor that has ended."""
        for descriptor in (self._exit, self._guard_exit):
            if descriptor is not None:
                os.close(descriptor)
        self._exit = self._guard_exit = None
        self._is_gone = True

    def _signal_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.home.pid, signal.SIGKILL)


def _watch(pid: int) -> int | None:
    """Gives a file descriptor that is readable once a process has ended; None where there is none, or no such process."""
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        return None


def _ended(watch: int | None, deadline: float) -> bool:
    """Waits for a process to end; guesses that it has where the system cannot tell."""
    return watch is None or bool(select.select([watch], [], [], max(0.0, deadline - time.monotonic()))[0])


def cause_of_death(reference: Any) -> str:
    """Asks Ray why an actor has died.

    Args:
        reference: A call that the actor has not answered.

    Returns:
        Ray's words in one line, or that it knows nothing.
    """
    if not ray.is_initialized():
        return "Ray was shut down"
    try:
        ray.get(reference, timeout=_CAUSE_PATIENCE_S)
    except GetTimeoutError:
        return "its process ended, and Ray does not say why"
    except (RayActorError, RayTaskError) as error:
        return " ".join(str(error).split())
    return "it ended by itself"
