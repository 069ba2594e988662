"""The share of an actor on this node, reached through shared memory."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from typing import Any

from lit_sb3_ray.vec.channel import Channel
from lit_sb3_ray.vec.failures import EnvFailure, PeerLost
from lit_sb3_ray.vec.group import Command
from lit_sb3_ray.vec.memory import send_object
from lit_sb3_ray.vec.peer import Peer
from lit_sb3_ray.vec.process import ActorProcess, cause_of_death
from lit_sb3_ray.vec.sending import dump
from lit_sb3_ray.vec.serving import Berth, Post, step_post


class SharedPeer(Peer):
    """An actor that serves a channel.

    Args:
        rows: The share's environments.
        connection: The socket to it.
        channel: The learner's end of the channel over that socket.
        process: The actor.
        serving: Ray's reference of the call that serves; it tells why the actor has died.
        wakes: Whether the actor is woken for each step by itself; otherwise `Muster.ring` wakes it with others.
    """

    def __init__(
        self,
        rows: range,
        connection: socket.socket,
        channel: Channel,
        process: ActorProcess,
        serving: Any,
        *,
        wakes: bool,
    ) -> None:
        super().__init__(rows)
        self._wakes = wakes
        self._channel = channel
        self._connection = connection
        self._process = process
        self._serving = serving
        self._broken: ConnectionError | None = None
        self._closing = False

    def board(self, berth: Berth, descriptors: tuple[int, ...]) -> None:
        """Sends the actor its place; `finish` then waits until it has taken it.

        Args:
            berth: The place.
            descriptors: File descriptors of the shared memory and of the doors.
        """
        try:
            send_object(self._connection, berth, descriptors)
        except ConnectionError as error:
            self._broken = error

    def begin_step(self, actions: Any, code: int, *, masked: bool) -> None:
        """Posts a step; see `Peer`."""
        if code >= 0:
            self._post(step_post(code, masked=masked), wake=self._wakes)
        else:
            kind = Post.STEP_BY_MAIL_MASKED if masked else Post.STEP_BY_MAIL
            self._post(kind, dump([actions[row] for row in self.rows]))

    def begin(self, command: Command, rows: Sequence[int], arguments: Sequence[Any]) -> None:
        """Posts a command; see `Peer`."""
        self._post(command, dump((rows, arguments)))

    def finish(self, deadline: float | None) -> list[Any] | EnvFailure:
        """Waits for the actor's post; see `Peer`."""
        if not self._channel.is_owed:
            return []
        try:
            if self._broken is not None:
                raise self._broken
            _, mail = self._channel.wait(deadline)
        except ConnectionError:
            raise PeerLost(f"its actor has died: {cause_of_death(self._serving)}", self._channel.their_place) from None
        except TimeoutError:
            raise PeerLost("its actor does not answer", self._channel.their_place) from None
        result: list[Any] | EnvFailure = pickle.loads(mail) if mail else []
        return result

    def begin_close(self) -> None:
        """Posts the close unless the actor is still busy, which the end of the connection tells it then; see `Peer`."""
        if self._channel.is_owed:
            self._channel.close()
        else:
            self._closing = True
            self._post(Post.CLOSE)

    def finish_close(self, deadline: float) -> EnvFailure | None:
        """Waits for the environments to be closed, then ends the actor; see `Peer`."""
        failure = None
        if self._closing and self._broken is None:
            try:
                kind, mail = self._channel.wait(deadline)
                failure = pickle.loads(mail) if kind == Post.FAILURE else None
            except (ConnectionError, TimeoutError):
                pass
        else:
            self._process.wait_gone(deadline)
        self.kill()
        return failure

    def kill(self) -> None:
        """Ends the actor; see `Peer`."""
        self._channel.close()
        self._process.kill()

    def _post(self, kind: int, mail: bytes = b"", *, wake: bool = True) -> None:
        try:
            self._channel.post(kind, mail, wake=wake)
        except ConnectionError as error:
            self._broken = error
