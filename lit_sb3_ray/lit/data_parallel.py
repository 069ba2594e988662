"""Several learners of one model: the same weights in each, its own environments to each.

    the first learner                 the others
    GO, or MARK   ----------------->  wait for it
    collect_rollouts                  collect_rollouts
    agree  <----------------------->  agree: go on? statistics are merged, episodes handed to the first
    train  <----------------------->  train: gradients are averaged at the end of each backward pass
    at the boundary: SAVE, STOP --->  wait for it

The first learner alone says what comes next, so that none waits for one that has left. In between, all make the same number of
passes, since all have as many environments and steps. Any of them may end the training when they agree, by a callback that
says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stable_baselines3.common.base_class import BaseAlgorithm

from lit_sb3_ray.errors import LearnerError
from lit_sb3_ray.lit.agreement import Order, Tally
from lit_sb3_ray.lit.exchange import Exchange
from lit_sb3_ray.lit.handover import hand_over, receive_buffers, write_states
from lit_sb3_ray.lit.joint_iteration import JointIteration
from lit_sb3_ray.lit.merging import Merger
from lit_sb3_ray.lit.own_state import common_state, own_state, set_common_state, set_own_state
from lit_sb3_ray.lit.state import capture, normalize_statistics, restore
from lit_sb3_ray.lit.stop import Interrupted, StopGuard

if TYPE_CHECKING:
    from lit_sb3_ray.lit.iteration import Session

logger = logging.getLogger(__name__)

# Seconds that the other learners have to answer after an iteration was given up.
LAST_WORDS_S = 1.0


class DataParallel:
    """One learner's part in training a model together with others.

    Attributes:
        exchange: The way to the other learners.
        tally: Counts env steps and keeps episodes; the first of the learner's callbacks.
        record: Called in the first learner for each episode of the others, with the index of its env among all.
        check: Called in the first learner while it waits; raises when another one is lost.
        dismissed: Whether the first learner has said that there is nothing more to do.
    """

    def __init__(
        self,
        exchange: Exchange,
        guard: StopGuard,
        *,
        resumed: bytes | None = None,
        buffer_limit: float = 4.0,
        scratch: Path | None = None,
    ) -> None:
        """Prepares training; nothing is sent yet.

        Args:
            exchange: The way to the other learners.
            guard: That of the learner's module.
            resumed: What `own_state` gave at the checkpoint to go on from; None for a new run, and in the first learner.
            buffer_limit: Largest replay buffer that a checkpoint holds of a learner, in GiB.
            scratch: Folder for a replay buffer on its way; None in the first learner.
        """
        self.exchange = exchange
        self.tally = Tally(exchange.size, self._heed)
        self.record: Callable[[int, dict[str, Any]], None] = _record_nothing
        self.check: Callable[[], None] = _check_nothing
        self.dismissed = False
        self._guard = guard
        self._resumed = resumed
        self._buffer_limit = buffer_limit
        self._scratch = scratch
        self._joint: JointIteration | None = None
        self._begun = 0
        self._called_off: int | None = None
        self._given_up = False
        self._marked: list[bytes] = []
        self._deadline = float("inf")
        exchange.look_around = self._look_around

    @property
    def leads(self) -> bool:
        """Whether this is the first learner."""
        return self.exchange.rank == 0

    # The beginning

    def begin(self, algorithm: BaseAlgorithm) -> None:
        """Gives all learners the first one's weights, optimizers, counters and statistics; before any env is reset.

        Args:
            algorithm: The learner's own.
        """
        content = self.exchange.hand_out(common_state(algorithm) if self.leads else b"")
        if not self.leads:
            set_common_state(algorithm, content)
        self._merger = Merger(normalize_statistics(algorithm))

    def join(self, session: Session) -> None:
        """Lets a session train together with those of the other learners.

        Args:
            session: The learner's own, begun.
        """
        joint = JointIteration(session, self.exchange, self.tally, self._merger, lambda *episode: self.record(*episode))
        self._joint = joint
        session.agree = lambda going: not self._guard.cut and joint.agree(going)
        if self._resumed is not None:
            set_own_state(session, self._resumed)

    def leave(self) -> None:
        """Takes the hooks away."""
        if self._joint is not None:
            self._joint.end()

    # An iteration

    def next_iteration(self, session: Session, mark: bool) -> bool:
        """Begins the next iteration with all learners; one that is not the first does until then what that one asks for.

        Args:
            session: The learner's own, at a boundary.
            mark: In the first learner, whether it copies its state before the iteration, as all do then.

        Returns:
            False when there is no further iteration.
        """
        if self.leads:
            self.exchange.tell([Order.MARK if mark else Order.GO])
        elif not self._follow(session):
            return False
        self._begun += 1
        return True

    def mark(self, session: Session) -> None:
        """Hands the own states of all learners to the first, in case the iteration is given up and they do not answer then.

        Args:
            session: The learner's own, at a boundary.
        """
        self._marked = self.exchange.gather(b"" if self.leads else own_state(session))

    def give_up(self) -> None:
        """Gives the iteration under way up: what the learners still say goes another way, where nothing hangs.

        The first one calls the others out of it.
        """
        self._called_off = None
        self._given_up = True
        self.exchange.abandon(self._begun)

    def call_off(self, begun: int) -> None:
        """Hears, in any thread of a learner that is not the first, that an iteration is given up.

        Args:
            begun: Its number, counted from 1 in this training.
        """
        self._called_off = begun

    # At a boundary

    def collect(self, folder: Path) -> list[Path]:
        """Collects what a checkpoint holds of the other learners; in the first one.

        Args:
            folder: Where the files go; emptied first.

        Returns:
            The files: each learner's own state, and its replay buffer if it has one.
        """
        if self._given_up:
            self._deadline = time.monotonic() + LAST_WORDS_S
        try:
            self.exchange.tell([Order.SAVE])
            states = self.exchange.gather(b"")
        except Interrupted:
            logger.warning("the other learners do not answer: the checkpoint is without their replay buffers")
            self.dismissed, self._deadline = True, float("inf")
            return write_states(folder, self._marked)
        self._deadline = float("inf")
        return [*write_states(folder, states), *receive_buffers(self.exchange, folder)]

    def dismiss(self) -> None:
        """Tells the other learners, from the first, that there is nothing more to do."""
        if not self.dismissed:
            self.dismissed = True
            self.exchange.tell([Order.STOP])

    def wait_for_dismissal(self, session: Session) -> None:
        """Does what the first learner still asks for, after the training."""
        if self._follow(session):
            raise LearnerError("the first learner goes on where this one has ended")

    def _follow(self, session: Session) -> bool:
        """Does what the first learner asks for at a boundary, until it is to begin an iteration or to stop."""
        while not self.dismissed:
            try:
                (order,) = self.exchange.tell([0])
            except Interrupted:
                self._go_back(session)
                continue
            if order in (Order.GO, Order.MARK):
                if order == Order.MARK:
                    self._guard.snapshot = capture(session.algorithm, session.callback, session.iteration, {})
                    self.mark(session)
                return True
            if order == Order.STOP:
                self.dismissed = True
            else:
                hand_over(self.exchange, session, self._scratch, self._buffer_limit)
        return False

    def _go_back(self, session: Session) -> None:
        """Goes back over an iteration that this learner has ended, and the first one has given up."""
        snapshot = self._guard.snapshot
        assert snapshot is not None, "an iteration is given up only where there is a state to go back to"
        self.give_up()
        restore(snapshot, session.algorithm, session.callback)
        session.iteration = snapshot.iteration

    # Interruptions

    def _is_called_off(self) -> bool:
        return self._called_off is not None and self._begun >= self._called_off

    def _heed(self) -> None:
        """Lets the rollout end at this step if the iteration was called off."""
        if self._is_called_off():
            self._guard.requested = self._guard.overdue = True

    def _look_around(self) -> None:
        """Ends a wait for the other learners where it would be in vain."""
        self.check()
        self._heed()
        guard = self._guard
        if self._is_called_off() or (guard.running and guard.overdue and guard.snapshot is not None):
            raise Interrupted
        if time.monotonic() > self._deadline:
            raise Interrupted


def _record_nothing(index: int, episode: dict[str, Any]) -> None:
    """Stands in where no episodes are written down."""


def _check_nothing() -> None:
    """Stands in where nobody knows of the other learners."""
