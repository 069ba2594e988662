"""What learners that train one model together send each other.

A wait is never longer than a moment inside torch, where Python would hear no signal.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from lit_sb3_ray.errors import LearnerGoneError
from lit_sb3_ray.lit.meeting import Meeting, await_all, dist, gloo, nccl, visit

# Between two looks around while a learner waits for the others.
TICK_S = 0.1
# An evaluation, or a step of a slow environment, may take any time; that a learner is gone is noticed otherwise.
_FOR_EVER = timedelta(days=30)
# A file travels in pieces of so many bytes.
_PIECE = 64 * 2**20
_ABANDONED = "abandoned"


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
        self._store = visit(meeting) if store is None else store
        await_all(meeting, self._store, self.look_around)
        # What a cut iteration has left waiting stays in its group for ever; whatever is still to be said goes through another.
        # Both are kept: a group that is dropped closes its connections, which others would take for a death.
        self._training, self._stopping = (gloo(name, self._store, meeting) for name in ("training", "stopping"))
        self._group = self._training
        self._gradients = nccl("gradients", self._store, meeting) if meeting.on_gpus else None

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
        store = visit(meeting)

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


def _tensor(content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _short(error: BaseException) -> str:
    """The first line of what gloo says, without the place in its own source."""
    return str(error).split("\n")[0].rpartition("] ")[2][:200]
