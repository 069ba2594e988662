"""The learner's view of one share of the environments, wherever that lives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from lit_sb3_ray.vec.failures import EnvFailure
from lit_sb3_ray.vec.group import Command


class Transport(StrEnum):
    """How the learner reaches an actor."""

    AUTO = "auto"  # shared memory where the actor lives on the learner's node, calls elsewhere
    SHARED = "shared"
    CALLS = "calls"


class Peer(ABC):
    """A share of the environments, asked for one thing at a time.

    Each `begin_...` is followed by one `finish`, before which the others can be begun. Results of steps and resets are in the
    share's rows of the batch when `finish` returns.

    Args:
        rows: The share's environments.
    """

    def __init__(self, rows: range) -> None:
        self.rows = rows

    @abstractmethod
    def begin_step(self, actions: Any, code: int, *, masked: bool) -> None:
        """Asks for a step. Actors on this node may go on sleeping until `Muster.ring` wakes them.

        Args:
            actions: Actions of all environments of the batch.
            code: As what they are in the batch's memory; -1 when they are not.
            masked: Whether action masks shall be left in the batch, too.
        """

    @abstractmethod
    def begin(self, command: Command, rows: Sequence[int], arguments: Sequence[Any]) -> None:
        """Asks for a command; see `EnvGroup.execute`."""

    @abstractmethod
    def finish(self, deadline: float | None) -> list[Any] | EnvFailure:
        """Waits for what was begun.

        Args:
            deadline: When to give up, by `time.monotonic`; None never does.

        Returns:
            What `EnvGroup.step` or `EnvGroup.execute` returns; nothing of it is the environments' own.

        Raises:
            PeerLost: The process is gone or the deadline has passed. The peer can only be killed then.
        """

    @abstractmethod
    def begin_close(self) -> None:
        """Asks for the environments to be closed, whatever else was begun; raises nothing."""

    @abstractmethod
    def finish_close(self, deadline: float) -> EnvFailure | None:
        """Waits until nothing is left of the share, by force after the deadline; returns the first failure of a close."""

    @abstractmethod
    def kill(self) -> None:
        """Ends the share's process and everything that it has started, at once, and waits for that."""
