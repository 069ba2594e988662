"""All shares of the environments together: started, replaced and closed."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace

from lit_sb3_ray.scale.metrics import RESTARTS, tell
from lit_sb3_ray.scale.processors import usable_cpus
from lit_sb3_ray.vec.batch import Batch, Layout
from lit_sb3_ray.vec.calls import CallPeer
from lit_sb3_ray.vec.channel import COUNT, Channel
from lit_sb3_ray.vec.failures import ActorError, EnvFailure, PeerLost
from lit_sb3_ray.vec.group import Description, EnvGroup
from lit_sb3_ray.vec.grouping import Grouping
from lit_sb3_ray.vec.inline import InlinePeer
from lit_sb3_ray.vec.launch import Launched, Launcher
from lit_sb3_ray.vec.memory import anonymous_memory, map_memory
from lit_sb3_ray.vec.muster import Muster
from lit_sb3_ray.vec.peer import Peer
from lit_sb3_ray.vec.sending import EnvFn
from lit_sb3_ray.vec.serving import Berth
from lit_sb3_ray.vec.shared import SharedPeer

logger = logging.getLogger(__name__)

# A wake-up costs a tenth of a millisecond, so a poll may last for some steps of a cheap environment. Where processes outnumber
# processors, a poll takes time from those that work, so that all sleep at once.
_POLL_S = 2e-3
_POLL_CROWDED_S = 2e-4
_MAILBOX_BYTES = 1 << 16
_BOARD_PATIENCE_S = 60.0
_CLOSE_PATIENCE_S = 5.0


class Fleet:
    """The shares of the environments.

    Args:
        env_fns: What builds each environment.
        grouping: How they are split.
        launcher: What starts actors; None when the grouping has none.
        max_restarts: How often each actor may be replaced.

    Attributes:
        peers: The shares, in the order of their rows.
        description: What the environments are.
        batch: Where their results are.
        muster: What wakes and awaits actors on this node together; None when there are no actors.

    Raises:
        EnvError: An environment cannot be built.
        ActorError: An actor cannot be started.
    """

    def __init__(self, env_fns: Sequence[EnvFn], grouping: Grouping, launcher: Launcher | None, max_restarts: int) -> None:
        self._launcher = launcher
        self._max_restarts = max_restarts
        self._first = 1 if grouping.inline else 0
        self._restarts = [0] * len(grouping.actors)
        is_crowded = len(grouping.actors) >= usable_cpus()
        self._patience = _POLL_CROWDED_S if is_crowded else _POLL_S
        self._memory = -1
        self.peers: list[Peer] = []
        self.muster: Muster | None = None
        try:
            self._start(env_fns, grouping)
        except BaseException:
            self.close()
            raise

    @property
    def gathering(self) -> Muster | None:
        """What wakes and awaits several actors together; one alone is reached sooner by its own channel."""
        return self.muster if len(self._restarts) > 1 else None

    def replace(self, number: int, lost: PeerLost) -> Peer:
        """Ends what is left of a share and starts it anew in another actor.

        Args:
            number: Which of `peers`.
            lost: Why.

        Returns:
            The new peer, whose environments must be reset first.

        Raises:
            ActorError: That has happened too often.
            EnvError: An environment cannot be built again.
        """
        old, share = self.peers[number], number - self._first
        rows = old.rows
        while True:
            old.kill()
            at_work = "" if lost.index is None else f" (environment {lost.index} was at work)"
            self._restarts[share] += 1
            if self._launcher is None or self._restarts[share] > self._max_restarts:
                raise ActorError(
                    f"environments {rows.start} to {rows.stop - 1} were lost {self._restarts[share]} times, and max_restarts "
                    f"is {self._max_restarts}{at_work}: {lost.cause}"
                )
            tell(RESTARTS, 1)
            logger.warning(
                "environments %d to %d are started anew, %d of at most %d times%s: %s",
                *(rows.start, rows.stop - 1, self._restarts[share], self._max_restarts, at_work, lost.cause),
            )
            try:
                [launched] = self._launcher.launch([rows])
                peer = self.peers[number] = self._board(launched, share)
                peer.finish(time.monotonic() + _BOARD_PATIENCE_S)
            except PeerLost as again:
                old, lost = self.peers[number], again
            else:
                return peer

    def close(self) -> EnvFailure | None:
        """Closes all environments and ends their actors, by force those that do not end themselves in time.

        Returns:
            The first failure of an environment's close.
        """
        failure = None
        deadline = time.monotonic() + _CLOSE_PATIENCE_S
        peers, self.peers = self.peers, []
        # The last reference to the arrays gives their memory back.
        self.batch = Layout(0, (), None, 0, 0, 0).map(b"")
        for peer in peers:
            peer.begin_close()
        for peer in peers:
            failure = peer.finish_close(deadline) or failure
        if self.muster is not None:
            self.muster.close()
            self.muster = None
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1
        return failure

    def _start(self, env_fns: Sequence[EnvFn], grouping: Grouping) -> None:
        own = None
        if grouping.inline:
            own = _build([env_fns[row] for row in grouping.inline], grouping.inline.start)
            self.peers.append(InlinePeer(grouping.inline, own))
        launched: list[Launched] = []
        if self._launcher is not None:
            try:
                launched = self._launcher.launch(grouping.actors)
            except PeerLost as lost:
                raise ActorError(f"environment {lost.index} cannot be started: {lost.cause}") from None
        self.description = launched[0].description if own is None else own.describe()
        self.batch = self._make_batch(self.description, len(env_fns), len(grouping.actors))
        if launched:
            self.muster = Muster(self.batch, self._patience)
        if own is not None:
            own.attach(self.batch.rows(grouping.inline))
        for share, ship in enumerate(launched):
            self.peers.append(self._board(ship, share))
        for peer in self.peers[self._first :]:
            try:
                peer.finish(time.monotonic() + _BOARD_PATIENCE_S)
            except PeerLost as lost:
                raise ActorError(f"environment {peer.rows.start} cannot be started: {lost.cause}") from None

    def _make_batch(self, description: Description, n_envs: int, actors: int) -> Batch:
        layout = Layout.of(description.observation_space, description.action_space, n_envs, actors, _MAILBOX_BYTES)
        if not actors:
            return layout.map(bytearray(layout.size))
        self._memory = anonymous_memory(layout.size)
        return layout.map(map_memory(self._memory, layout.size))

    def _board(self, launched: Launched, share: int) -> Peer:
        """Gives an actor its place in the batch; what `finish` then waits for is that it has taken it."""
        rows, layout = launched.rows, self.batch.layout
        if launched.connection is None or self.muster is None:
            if self.muster is not None:
                self.muster.leave(share)
            return CallPeer(rows, self.batch.rows(rows), launched.process, replace(layout, n_envs=len(rows), shares=0))
        mine, theirs = self.batch.lines[share]
        outbox, inbox = self.batch.mail[share]
        for word in range(len(mine)):
            mine[word] = theirs[word] = 0
        mine[COUNT] = 1  # the place that is sent is to be answered, too
        channel = Channel(launched.connection, mine, theirs, outbox, inbox, launched.process.home.pid, self._patience)
        wakes = self.gathering is None
        peer = SharedPeer(rows, launched.connection, channel, launched.process, launched.serving, wakes=wakes)
        self.muster.join(share, channel)
        peer.board(Berth(layout, share, rows, os.getpid(), self._patience), (self._memory, *self.muster.doors))
        return peer


def _build(env_fns: Sequence[EnvFn], first: int) -> EnvGroup:
    group = EnvGroup.build(env_fns, first)
    if isinstance(group, EnvFailure):
        raise group.error()
    return group
