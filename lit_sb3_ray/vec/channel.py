"""Two processes that take turns: a counter each in shared memory, mailboxes beside it, a socket to sleep on."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from typing import Final

from lit_sb3_ray.vec.memory import receive_exactly

# Words of the line that one side writes and the other reads.
COUNT: Final = 0  # posts so far
ASLEEP: Final = 1  # 1 while this side sleeps on the socket and must be woken
KIND: Final = 2  # what the last post is
LENGTH: Final = 3  # bytes of its mail; negative when they follow through the socket
PLACE: Final = 4  # which environment is being stepped, for reports

_WAKE, _MAIL = b"\0", b"\1"
_LOOK_AGAIN_MS = 250  # how long a sleep lasts before the other side's process is looked for
_LEAST_PATIENCE = 50e-6
_STOLEN_S = 5e-4  # a look that takes this long has let a process run that is not one of ours
_REST_S = 0.1


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
    ) -> None:
        self._socket = connection
        self._mine = mine
        self._theirs = theirs
        self._outbox = outbox
        self._inbox = inbox
        self._peer = peer
        self._patience = self._most_patience = patience
        self._poll_from = 0.0
        self._seen = theirs[COUNT]
        self._mail_begun = False
        self._lock = threading.Lock()
        self._poller = select.poll()
        self._poller.register(connection, select.POLLIN)

    def post(self, kind: int, mail: bytes = b"") -> None:
        """Makes what was written visible to the other side, and wakes it if it sleeps.

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
        self._fence()
        mine[COUNT] += 1
        if not fits:
            self._socket.sendall(_MAIL)
            self._socket.sendall(mail)
            return
        self._fence()
        if self._theirs[ASLEEP]:
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
        theirs, seen = self._theirs, self._seen
        if theirs[COUNT] == seen:
            self._await(seen, deadline)
        self._fence()
        self._seen = theirs[COUNT]
        kind, length = theirs[KIND], theirs[LENGTH]
        if not length:
            return kind, b""
        return kind, self._inbox[:length] if length > 0 else self._receive(-length, deadline)

    @property
    def their_place(self) -> int:
        """Which environment the other side was at last."""
        return self._theirs[PLACE]

    def close(self) -> None:
        """Closes the socket, which tells the other side."""
        self._socket.close()

    def _await(self, seen: int, deadline: float | None) -> None:
        """Polls, then sleeps, and learns from how long it took whether polling pays."""
        theirs = self._theirs
        start = now = time.perf_counter()
        until = start + self._patience if start > self._poll_from else start
        while now < until:
            os.sched_yield()
            before, now = now, time.perf_counter()
            if now - before > _STOLEN_S:
                # Somebody else needs this processor, and takes it whenever it is offered. Those who sleep are let run sooner.
                self._poll_from = now + _REST_S
                break
            if theirs[COUNT] != seen:
                return
        self._sleep(seen, deadline)
        if time.perf_counter() - start < self._most_patience:
            self._patience = self._most_patience
        else:
            self._patience = max(self._patience / 2, min(_LEAST_PATIENCE, self._most_patience))

    def _sleep(self, seen: int, deadline: float | None) -> None:
        mine, theirs = self._mine, self._theirs
        mine[ASLEEP] = 1
        try:
            while True:
                # The fence keeps this look from being made before the flag is seen by the other side.
                self._fence()
                if theirs[COUNT] != seen:
                    return
                if self._poller.poll(self._milliseconds(deadline)):
                    self._take_byte(seen)
                elif theirs[COUNT] == seen:
                    self._check_peer()
        finally:
            mine[ASLEEP] = 0

    def _milliseconds(self, deadline: float | None) -> int:
        """Tells how long to sleep at most."""
        if deadline is None:
            return _LOOK_AGAIN_MS
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(_LOOK_AGAIN_MS, int(left * 1000) + 1)

    def _take_byte(self, seen: int) -> None:
        try:
            byte = self._socket.recv(1)
        except ConnectionError:
            byte = b""
        if byte == _MAIL:
            self._mail_begun = True
        elif not byte and self._theirs[COUNT] == seen:
            raise ConnectionError("the other process has closed the connection")

    def _check_peer(self) -> None:
        """Looks for the other process itself: children that it has forked may hold its end of the socket open."""
        try:
            os.kill(self._peer, 0)
        except ProcessLookupError:
            raise ConnectionError("the other process is gone") from None
        except PermissionError:
            return  # it exists, under another user

    def _receive(self, length: int, deadline: float | None) -> bytearray:
        """Receives announced mail through the socket, past the wake-ups that precede it."""
        while not self._mail_begun:
            self._mail_begun = receive_exactly(self._socket, 1) == _MAIL
        self._mail_begun = False
        return receive_exactly(self._socket, length)

    def _fence(self) -> None:
        """Orders memory accesses before and after it: a lock taken and released twice is a full barrier on all processors."""
        lock = self._lock
        lock.acquire()
        lock.release()
        lock.acquire()
        lock.release()
