"""Two processes that take turns: a counter each in shared memory, mailboxes beside it, a socket to sleep on."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lit_sb3_ray.vec.memory import receive_exactly
from lit_sb3_ray.vec.patience import Patience

# Words of the line that one side writes and the other reads.
COUNT: Final = 0  # posts so far
ASLEEP: Final = 1  # 1 while this side sleeps on the socket and must be woken
KIND: Final = 2  # what the last post is
LENGTH: Final = 3  # bytes of its mail; negative when they follow through the socket
PLACE: Final = 4  # which environment is being stepped, for reports

# Words of the board, which the learner writes and all actors read.
DOOR: Final = 0  # at which of the doors to sleep
GATHERING: Final = 1  # 1 while the learner sleeps until all actors have answered

_WAKE, _MAIL = b"\0", b"\1"
_LOOK_AGAIN_MS = 250  # how long a sleep lasts before the other side's process is looked for


@dataclass(frozen=True)
class Hall:
    """What an actor shares with the others; see `Muster`, the learner's side of it.

    Attributes:
        board: The board's words.
        words: Control words of all channels.
        doors: File descriptors to sleep at.
    """

    board: memoryview
    words: np.ndarray[Any, Any]
    doors: tuple[int, int]


class Channel:
    """One end of the connection between the learner and an actor.

    Each side posts in turn. A post becomes visible by its counter, after everything that was written before it; the other side
    polls that counter for a while and then sleeps on the socket. The end of the socket tells that the other process is gone.

    Args:
        connection: A connected UNIX socket, which the channel closes.
        mine: Words that this side writes, `theirs` those of the other side.
        theirs: See `mine`.
        outbox: Memory for mail to the other side; longer mail goes through the socket.
        inbox: The other side's outbox.
        peer: Process id of the other side.
        patience: The longest poll, in seconds; 0 sleeps at once.
        hall: What the actor shares with others; None for the learner's end.
    """

    def __init__(
        self,
        connection: socket.socket,
        mine: memoryview,
        theirs: memoryview,
        outbox: memoryview,
        inbox: memoryview,
        peer: int,
        patience: float,
        hall: Hall | None = None,
    ) -> None:
        self._socket = connection
        self._mine = mine
        self._theirs = theirs
        self._outbox = outbox
        self._inbox = inbox
        self._peer = peer
        self._patience = Patience(patience)
        self._hall = hall
        self._seen = theirs[COUNT]
        self._mail_begun = False
        self._descriptor = connection.fileno()
        self._pollers = [self._poller()] if hall is None else [self._poller(door) for door in hall.doors]

    def post(self, kind: int, mail: bytes = b"", *, wake: bool = True) -> None:
        """Makes what was written visible to the other side.

        Args:
            kind: What the post is.
            mail: What goes along.
            wake: Whether to wake the other side if it sleeps; otherwise `Muster.ring` does.

        Raises:
            ConnectionError: The mail was long and the other side is gone. Short mail to a dead process raises nothing: the
                wait for its answer does.
        """
        mine, length = self._mine, len(mail)
        fits = length <= len(self._outbox)
        if length and fits:
            self._outbox[:length] = mail
        mine[KIND] = kind
        mine[LENGTH] = length if fits else -length
        fence()
        mine[COUNT] += 1
        if not fits:
            self._socket.sendall(_MAIL)
            self._socket.sendall(mail)
        elif wake:
            fence()
            if self._theirs[ASLEEP] or self._is_last():
                # A full socket holds wake-ups enough; a broken one shows at the next wait.
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    self._socket.send(_WAKE, socket.MSG_DONTWAIT)

    def wait(self, deadline: float | None = None) -> tuple[int, memoryview | bytes | bytearray]:
        """Waits for the other side's next post.

        Args:
            deadline: When to give up, by `time.monotonic`; None never does.

        Returns:
            The post's kind, and its mail, which is valid until this side posts.

        Raises:
            ConnectionError: The other side is gone without posting.
            TimeoutError: The deadline has passed.
        """
        theirs = self._theirs
        if theirs[COUNT] == self._seen:
            self._patience.wait(self.has_post, lambda: self._sleep(deadline))
        fence()
        self._seen = theirs[COUNT]
        kind, length = theirs[KIND], theirs[LENGTH]
        if not length:
            return kind, b""
        return kind, self._inbox[:length] if length > 0 else self._receive(-length)

    def has_post(self) -> bool:
        """Tells whether the other side has posted since the last wait."""
        return bool(self._theirs[COUNT] != self._seen)

    def skip(self) -> None:
        """Takes the other side's post unread."""
        self._seen = self._theirs[COUNT]

    @property
    def is_owed(self) -> bool:
        """Whether this side, which posts first, has an answer to wait for."""
        return self._mine[COUNT] != self._seen

    def fileno(self) -> int:
        """Gives the socket's file descriptor, which is readable when the other side wakes this one or is gone."""
        return self._descriptor

    def heed(self, *, readable: bool) -> bool:
        """Looks at what has ended a sleep of the learner, for `Muster`.

        Args:
            readable: Whether the socket has something; a wake-up is taken off it.

        Returns:
            Whether the wait can go on; otherwise `wait` has something to receive or to raise.
        """
        try:
            if readable and not self._mail_begun:
                self._take_byte()
            elif not readable and not self.has_post():
                self._check_peer()
        except ConnectionError:
            return False
        return not self._mail_begun

    @property
    def their_place(self) -> int:
        """Which environment the other side was at last."""
        return self._theirs[PLACE]

    def close(self) -> None:
        """Closes the socket, which tells the other side."""
        self._socket.close()

    def _is_last(self) -> bool:
        """Tells whether the learner sleeps until all have answered and this was the last answer."""
        hall = self._hall
        return hall is not None and bool(hall.board[GATHERING]) and all_answered(hall.words)

    def _poller(self, *doors: int) -> select.poll:
        poller = select.poll()
        for descriptor in (self._descriptor, *doors):
            poller.register(descriptor, select.POLLIN)
        return poller

    def _sleep(self, deadline: float | None) -> None:
        mine, hall = self._mine, self._hall
        mine[ASLEEP] = 1
        try:
            while True:
                # The learner shows the next door after its post, so the door must be looked at before the post is.
                poller = self._pollers[0 if hall is None else hall.board[DOOR]]
                # The fence keeps this look from being made before the flag is seen by the other side.
                fence()
                if self.has_post():
                    return
                events = poller.poll(milliseconds(deadline))
                for descriptor, _ in events:
                    if descriptor == self._descriptor:
                        self._take_byte()
                if not events and not self.has_post():
                    self._check_peer()
        finally:
            mine[ASLEEP] = 0

    def _take_byte(self) -> None:
        try:
            byte = self._socket.recv(1)
        except ConnectionError:
            byte = b""
        if byte == _MAIL:
            self._mail_begun = True
        elif not byte and not self.has_post():
            raise ConnectionError("the other process has closed the connection")

    def _check_peer(self) -> None:
        """Looks for the other process itself: children that it has forked may hold its end of the socket open."""
        try:
            os.kill(self._peer, 0)
        except ProcessLookupError:
            raise ConnectionError("the other process is gone") from None
        except PermissionError:
            return  # it exists, under another user

    def _receive(self, length: int) -> bytearray:
        """Receives announced mail through the socket, past the wake-ups that precede it."""
        while not self._mail_begun:
            self._mail_begun = receive_exactly(self._socket, 1) == _MAIL
        self._mail_begun = False
        return receive_exactly(self._socket, length)


def all_answered(words: np.ndarray[Any, Any]) -> bool:
    """Tells whether all actors have answered all posts, by the control words of their channels."""
    return bool(words[:, 0, COUNT].tobytes() == words[:, 1, COUNT].tobytes())


def milliseconds(deadline: float | None) -> int:
    """Tells how long to sleep at most before looking again.

    Raises:
        TimeoutError: The deadline has passed.
    """
    if deadline is None:
        return _LOOK_AGAIN_MS
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(_LOOK_AGAIN_MS, int(left * 1000) + 1)


def fence() -> None:
    """Orders memory accesses before and after it: a lock taken and released twice is a full barrier on all processors."""
    lock = threading.Lock()  # a new one, since an interrupt may leave it taken
    lock.acquire()
    lock.release()
    lock.acquire()
    lock.release()
