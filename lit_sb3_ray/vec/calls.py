"""The share of an actor on another node, reached by one Ray call a step."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from lit_sb3_ray.vec.batch import Batch, Layout
from lit_sb3_ray.vec.failures import EnvFailure, PeerLost
from lit_sb3_ray.vec.group import Command
from lit_sb3_ray.vec.peer import Peer
from lit_sb3_ray.vec.process import ActorProcess
from lit_sb3_ray.vec.sending import dump


class CallPeer(Peer):
    """An actor that is called; its results are copied into the batch.

    Args:
        rows: The share's environments.
        arrays: Their rows of the batch.
        process: The actor, with built environments.
        layout: Layout of a batch of these rows alone, which the actor makes for itself; `finish` waits for that first.
    """

    def __init__(self, rows: range, arrays: Batch, process: ActorProcess, layout: Layout) -> None:
        super().__init__(rows)
        self._arrays = arrays
        self._process = process
        self._actor = process.handle
        self._part = slice(rows.start, rows.stop)
        self._call: Any = self._actor.attach.remote(layout)

    def begin_step(self, actions: Any, code: int, *, masked: bool) -> None:
        """Calls for a step; see `Peer`."""
        own = actions[self._part] if code >= 0 else [actions[row] for row in self.rows]
        # Not as it is: Ray pickles in a way of its own, in which a script's classes are others and arrays cannot be written.
        self._call = self._actor.step.remote(dump(own), masked)

    def begin(self, command: Command, rows: Sequence[int], arguments: Sequence[Any]) -> None:
        """Calls for a command; see `Peer`."""
        self._call = self._actor.execute.remote(command, rows, dump(arguments))

    def finish(self, deadline: float | None) -> list[Any] | EnvFailure:
        """Waits for the call's result and copies its arrays; see `Peer`."""
        if self._call is None:
            return []
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            answer = ray.get(self._call, timeout=timeout)
        except GetTimeoutError:
            raise PeerLost("its actor does not answer") from None
        except RayActorError as error:
            raise PeerLost(f"its actor has died: {' '.join(str(error).split())}") from None
        except RayTaskError:
            # The call has failed, for want of a module that its arguments need for instance; the actor lives.
            self._call = None
            raise
        except RayError as error:
            # The answer may be lost where its node is, before the actor is known to be.
            raise PeerLost(f"the answer of its actor is lost: {' '.join(str(error).split())}") from None
        self._call = None
        mail: bytes = answer[0]
        arrays: dict[str, Any] = answer[1]
        result: list[Any] | EnvFailure = pickle.loads(mail) if mail else []
        for name, content in arrays.items():
            own = getattr(self._arrays, name)
            if isinstance(own, dict):
                for key, array in own.items():
                    array[:] = content[key]
            else:
                own[:] = content
        return result

    def begin_close(self) -> None:
        """Calls for the environments to be closed; see `Peer`."""
        self._call = None
        # Where Ray was shut down the actor has ended, and a call would start another Ray.
        if ray.is_initialized():
            with contextlib.suppress(RayError):
                self._call = self._actor.close.remote()

    def finish_close(self, deadline: float) -> EnvFailure | None:
        """Waits for that call, then ends the actor; see `Peer`."""
        failure = None
        if self._call is not None:
            with contextlib.suppress(RayError):
                failure = ray.get(self._call, timeout=max(0.0, deadline - time.monotonic()))
        self.kill()
        return failure

    def kill(self) -> None:
        """Ends the actor; see `Peer`."""
        self._process.kill()
