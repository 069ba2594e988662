"""What learners that train one model together send each other.

The groups are made here from torch's parts, and not by `init_process_group`: there is one of those a process, and a process
may train one run after another. A wait is never longer than a moment inside torch, where Python would hear no signal.
"""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from lit_sb3_ray.errors import LearnerGoneError

logger = logging.getLogger(__name__)

# Its parts are re-exported without saying so, which strict typing refuses by name.
dist: Any = distributed

# Between two looks around while a learner waits for the others.
TICK_S = 0.1
# For all learners to meet, once each of them has said that it is there.
_MEETING = timedelta(seconds=120)
# An evaluation, or a step of a slow environment, may take any time; that a learner is gone is noticed otherwise.
_FOR_EVER = timedelta(days=30)
# A file travels in pieces of so many bytes.
_PIECE = 64 * 2**20
_ABANDONED = "abandoned"


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


class Exchange:
    """Sums, broadcasts and gathers among learners, all of which make the same calls in the same order.

    Attributes:
        rank: This learner's number.
        size: How many there are.
        look_around: Called again and again while this learner waits; what it raises ends the wait.
    """

    def __init__(self, meeting: Meeting, store: Any = None, look_around: Callable[[], None] | None = None) -> None:
        """Meets the other learners, however long they take to get there.

        Args:
            meeting: Where, and who this one is.
            store: What `open_meeting` returned, in the first learner.
            look_around: See above.
        """
        self.rank, self.size = meeting.rank, meeting.size
        self.look_around: Callable[[], None] = look_around or _look_nowhere
        if store is None:
            store = dist.TCPStore(meeting.host, meeting.port, is_master=False, timeout=_MEETING)
        self._store = store
        self._assemble()
        # What a cut iteration has left waiting stays in its group for ever; whatever is still to be said goes through another.
        # Both are kept: a group that is dropped closes its connections, which others would take for a death.
        self._training, self._stopping = _gloo("training", store, meeting), _gloo("stopping", store, meeting)
        self._group = self._training
        self._gradients = _nccl(store, meeting) if meeting.on_gpus else None

    def _assemble(self) -> None:
        """Waits until all are there; torch itself would wait for a certain time, and for one that has died, too."""
        if self.rank == 0:
            awaited = [f"here/{rank}" for rank in range(1, self.size)]
        else:
            self._store.set(f"here/{self.rank}", "1")
            awaited = ["all"]
        pause = threading.Event()
        while not self._store.check(awaited):
            self.look_around()
            pause.wait(TICK_S / 4)
        if self.rank == 0:
            self._store.set("all", "1")

    def sum(self, values: torch.Tensor) -> None:
        """Replaces values, in the memory of the CPU, by their sum over all learners; the same bits in each.

        Raises:
            LearnerGoneError: Another learner is gone.
        """
        options: Any = dist.AllreduceOptions()
        options.timeout = _FOR_EVER
        self._finish(self._group.allreduce([values], options))

    def average_gradients(self, values: torch.Tensor) -> None:
        """Replaces a flat gradient by its mean over all learners, where it is.

        Raises:
            LearnerGoneError: Another learner is gone.
        """
        if self._gradients is not None:
            self._gradients.allreduce([values], dist.AllreduceOptions()).wait()
        elif values.device.type == "cpu":
            self.sum(values)
        else:
            here = values.cpu()
            self.sum(here)
            values.copy_(here)
        values.div_(self.size)

    def tell(self, numbers: Sequence[int]) -> list[int]:
        """Hands the first learner's numbers to the others.

        Args:
            numbers: The numbers; in the others, as many of any.

        Returns:
            The first learner's.
        """
        values = torch.tensor(list(numbers), dtype=torch.int64)
        self._broadcast(values)
        return [int(value) for value in values]

    def hand_out(self, content: bytes) -> bytes:
        """Hands the first learner's bytes to the others; what those give is of no account."""
        (size,) = self.tell([len(content)])
        values = _tensor(content) if self.rank == 0 else torch.empty(size, dtype=torch.uint8)
        if size:
            self._broadcast(values)
        return content if self.rank == 0 else values.numpy().tobytes()

    def gather(self, content: bytes) -> list[bytes]:
        """Collects bytes from all learners.

        Args:
            content: This learner's.

        Returns:
            Those of each, by rank; nothing but in the first learner.
        """
        # All send as many as the longest has, its length in front.
        (longest,) = self._largest(len(content))
        framed = struct.pack("<q", len(content)) + content + b"\0" * (longest - len(content))
        parts = self._collect(_tensor(framed))
        return [part[8 : 8 + struct.unpack("<q", part[:8])[0]] for part in parts]

    def gather_files(self, source: Path | None, target: Callable[[int], Path]) -> list[Path]:
        """Collects a file from each learner but the first, in pieces.

        Args:
            source: This learner's file; None for none.
            target: Where the file of a learner goes; asked in the first one alone.

        Returns:
            What was written, in the first learner.
        """
        written: dict[int, Path] = {}
        pieces: Iterator[bytes] = iter(()) if source is None else _pieces(source)
        while True:
            piece = next(pieces, b"")
            if self._largest(len(piece)) == [0]:
                return list(written.values())
            for rank, part in enumerate(self.gather(piece)):
                if part:
                    path = written.setdefault(rank, target(rank))
                    with path.open("ab") as file:
                        file.write(part)

    def abandon(self, iteration: int) -> None:
        """Gives an iteration up: what is said from now on goes through another group.

        The first learner calls the others out of whatever they do, see `watch`.

        Args:
            iteration: The iteration's number.
        """
        self._group = self._stopping
        if self.rank == 0:
            self._store.set(_ABANDONED, str(iteration))

    def break_off(self) -> None:
        """Ends a wait for gradients on a GPU, from another thread: NCCL itself waits for a learner that is gone."""
        if self._gradients is not None:
            self._gradients.abort()

    def watch(self, meeting: Meeting, called: Callable[[int], None]) -> threading.Thread:
        """Waits in a thread for the first learner to give an iteration up.

        Args:
            meeting: Where the learners meet.
            called: What to do then, with the iteration's number.
        """
        # A store answers one call at a time, and this one is to be asked while the other waits.
        store = dist.TCPStore(meeting.host, meeting.port, is_master=False, timeout=_MEETING)

        def look() -> None:
            pause = threading.Event()
            with suppress(RuntimeError):  # The first learner, and its store, are gone.
                while not store.check([_ABANDONED]):
                    pause.wait(TICK_S)
                called(int(store.get(_ABANDONED)))

        thread = threading.Thread(target=look, name="abandoned", daemon=True)
        thread.start()
        return thread

    def _largest(self, number: int) -> list[int]:
        options: Any = dist.AllreduceOptions()
        options.reduceOp, options.timeout = dist.ReduceOp.MAX, _FOR_EVER
        values = torch.tensor([number], dtype=torch.int64)
        self._finish(self._group.allreduce([values], options))
        return [int(value) for value in values]

    def _broadcast(self, values: torch.Tensor) -> None:
        options: Any = dist.BroadcastOptions()
        options.rootRank, options.timeout = 0, _FOR_EVER
        self._finish(self._group.broadcast([values], options))

    def _collect(self, values: torch.Tensor) -> list[bytes]:
        options: Any = dist.GatherOptions()
        options.rootRank, options.timeout = 0, _FOR_EVER
        parts = [[torch.empty_like(values) for _ in range(self.size)]] if self.rank == 0 else []
        self._finish(self._group.gather(parts, [values], options))
        return [part.numpy().tobytes() for part in parts[0]] if parts else []

    def _finish(self, work: Any) -> None:
        """Waits for the other learners, a moment at a time."""
        while not _is_done(work):
            self.look_around()


def _is_done(work: Any) -> bool:
    """Waits a moment for the others.

    Raises:
        LearnerGoneError: One of them is gone.
    """
    try:
        work.wait(timedelta(seconds=TICK_S))
    except RuntimeError:
        # torch says so, too, when the moment is over.
        if not work.is_completed():
            return False
    else:
        return True
    try:
        work.wait()
    except RuntimeError as error:
        raise LearnerGoneError(f"another learner is gone: {_short(error)}") from error
    return True


def _look_nowhere() -> None:
    """Stands in where nobody wants to look around."""


def _gloo(name: str, store: Any, meeting: Meeting) -> Any:
    """A group for what is in the CPU's memory."""
    kind: Any = dist.ProcessGroupGloo
    options = kind._Options()
    options._timeout = _MEETING
    options._devices = [kind.create_device(hostname=meeting.own_host)]
    return kind(dist.PrefixStore(name, store), meeting.rank, meeting.size, options)


def _nccl(store: Any, meeting: Meeting) -> Any:
    """A group for what is in GPUs' memories."""
    kind: Any = dist.ProcessGroupNCCL
    return kind(dist.PrefixStore("gradients", store), meeting.rank, meeting.size, kind.Options())


def _tensor(content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _short(error: BaseException) -> str:
    """The first line of what gloo says, without the place in its own source."""
    return str(error).split("\n")[0].rpartition("] ")[2][:200]
