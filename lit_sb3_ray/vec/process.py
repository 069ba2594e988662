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
        self._exit = os.pidfd_open(home.pid) if here and hasattr(os, "pidfd_open") else None

    def wait_gone(self, deadline: float) -> bool:
        """Waits until the process has ended; on other nodes, and where the system cannot tell, it only guesses so.

        Args:
            deadline: When to give up, by `time.monotonic`.

        Returns:
            Whether it has ended.
        """
        if self._exit is None:
            return True
        left = max(0.0, deadline - time.monotonic())
        return bool(select.select([self._exit], [], [], left)[0])

    def kill(self) -> None:
        """Ends the process and the children of its environments, and waits until it has ended."""
        with contextlib.suppress(RayError):
            ray.kill(self.handle)
        if self.here:
            # Ray asks the process to end itself, which one that is stopped or stuck may never hear.
            self.wait_gone(time.monotonic() + _EXIT_PATIENCE_S)
            self._signal_group()
            self.wait_gone(time.monotonic() + _KILL_PATIENCE_S)
        Releases.note()
        self.release()

    def release(self) -> None:
        """Gives up what is held for an actor that has ended."""
        if self._exit is not None:
            os.close(self._exit)
            self._exit = None

    def _signal_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.home.pid, signal.SIGKILL)


def cause_of_death(reference: Any) -> str:
    """Asks Ray why an actor has died.

    Args:
        reference: A call that the actor has not answered.

    Returns:
        Ray's words in one line, or that it knows nothing.
    """
    try:
        ray.get(reference, timeout=_CAUSE_PATIENCE_S)
    except GetTimeoutError:
        return "its process ended, and Ray does not say why"
    except (RayActorError, RayTaskError) as error:
        return " ".join(str(error).split())
    return "it ended by itself"
