"""The learner's side of all channels at once: waking every actor by one call of the system, being woken by the last answer."""

from __future__ import annotations

import contextlib
import os
import select
import sys

from lit_sb3_ray.vec.batch import Batch
from lit_sb3_ray.vec.channel import ASLEEP, COUNT, DOOR, GATHERING, KIND, LENGTH, Channel, all_answered, fence, milliseconds
from lit_sb3_ray.vec.patience import Patience


class Muster:
    """Wakes actors and waits for them together.

    Actors sleep at one of two doors, the one that the board shows. To wake them, the board shows the other one, and then that
    door is opened. It is shut again before its turn comes next, when everybody sleeps at the other. The actor that answers
    last wakes the learner.

    Args:
        batch: The batch with the board and the words of the channels.
        patience: The longest poll of the learner, in seconds; 0 sleeps at once.
    """

    def __init__(self, batch: Batch, patience: float) -> None:
        self._board, self._words = batch.board, batch.words
        self._patience = Patience(patience)
        self._doors = (Door(), Door())
        self._channels: dict[int, Channel] = {}
        self._by_descriptor: dict[int, Channel] = {}
        self._poller = select.poll()

    @property
    def doors(self) -> tuple[int, int]:
        """File descriptors for the actors to sleep at."""
        return self._doors[0].descriptor, self._doors[1].descriptor

    def join(self, share: int, channel: Channel) -> None:
        """Adds an actor's channel, in place of the one that the share had."""
        self._channels[share] = channel
        self._listen()

    def leave(self, share: int) -> None:
        """Forgets the channel of a share that has none any more."""
        self._channels.pop(share, None)
        self._words[share] = 0
        self._listen()

    @property
    def is_complete(self) -> bool:
        """Whether all actors have a channel."""
        return len(self._channels) == len(self._words)

    def _listen(self) -> None:
        self._by_descriptor = {each.fileno(): each for each in self._channels.values()}
        self._poller = select.poll()
        for descriptor in self._by_descriptor:
            self._poller.register(descriptor, select.POLLIN)

    def prepare(self) -> None:
        """Gets ready for posts that `ring` will tell of."""
        self._doors[1 - self._board[DOOR]].shut()

    def post(self, kind: int) -> None:
        """Posts the same to all actors, without mail and without waking any."""
        asked = self._words[:, 0]
        asked[:, KIND] = kind
        asked[:, LENGTH] = 0
        fence()
        asked[:, COUNT] += 1

    def take_empty(self) -> bool:
        """Takes the answers of all actors, if all have answered and none has anything to tell; returns whether it did."""
        if not self._are_ready():
            return False
        fence()
        if self._words[:, 1, LENGTH].any():
            return False
        for channel in self._channels.values():
            channel.skip()
        return True

    def ring(self) -> None:
        """Wakes all actors that sleep, after posts to them."""
        fence()
        if self._words[:, 1, ASLEEP].any():
            here = self._board[DOOR]
            self._board[DOOR] = 1 - here
            self._doors[here].open()

    def gather(self, deadline: float | None) -> None:
        """Waits until all actors have answered, or something else has happened that the wait for each will tell."""
        if self._channels and not self._are_ready():
            # The wait for each actor tells of a deadline that has passed.
            with contextlib.suppress(TimeoutError):
                self._patience.wait(self._are_ready, lambda: self._sleep(deadline))

    def close(self) -> None:
        """Closes the doors' descriptors."""
        for door in self._doors:
            door.close()

    def _are_ready(self) -> bool:
        return all_answered(self._words)

    def _sleep(self, deadline: float | None) -> None:
        board = self._board
        board[GATHERING] = 1
        try:
            while True:
                # The fence keeps this look from being made before the actors see the flag.
                fence()
                if self._are_ready():
                    return
                readable = {descriptor for descriptor, _ in self._poller.poll(milliseconds(deadline))}
                channels = [self._by_descriptor[each] for each in readable] or self._channels.values()
                if not all([channel.heed(readable=bool(readable)) for channel in channels]):
                    return
        finally:
            board[GATHERING] = 0


class Door:
    """A file descriptor that is readable for everybody while the door is open.

    An interrupt may break off what is done to it: the next `shut` puts it right.
    """

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self.descriptor = self._inside = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self.descriptor, self._inside = os.pipe()
            os.set_blocking(self.descriptor, False)
        self._is_open = False

    def open(self) -> None:
        """Opens the door."""
        self._is_open = True
        os.write(self._inside, (1).to_bytes(8, sys.byteorder))

    def shut(self) -> None:
        """Shuts the door, if it is open."""
        if self._is_open:
            with contextlib.suppress(BlockingIOError):
                os.read(self.descriptor, 8)
            self._is_open = False

    def close(self) -> None:
        """Closes the descriptors."""
        for descriptor in {self.descriptor, self._inside}:
            os.close(descriptor)
