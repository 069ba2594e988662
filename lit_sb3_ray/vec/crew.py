"""Asking all shares of the environments at once, and replacing those that are lost meanwhile."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from lit_sb3_ray.vec.actions import check_actions, odd_codes
from lit_sb3_ray.vec.failures import ActorError, EnvError, EnvFailure, PeerLost
from lit_sb3_ray.vec.fleet import Fleet
from lit_sb3_ray.vec.group import Command, Extra
from lit_sb3_ray.vec.inline import InlinePeer
from lit_sb3_ray.vec.masks import METHOD, read_mask
from lit_sb3_ray.vec.peer import Peer
from lit_sb3_ray.vec.serving import step_post

logger = logging.getLogger(__name__)

Reset = tuple[int | None, dict[str, Any] | None]  # seed and options

# What changes nothing in an environment, so that its action mask stays as it is.
_HARMLESS = (Command.HAS_ATTR, Command.IS_WRAPPED)


class Crew:
    """The environments of a fleet, asked together.

    Every method raises an `EnvError` for an environment that fails in a step or a reset, and an `ActorError` when an actor is
    lost too often; everything is closed by then.

    Args:
        fleet: The shares.
        timeout: Seconds that each may take for an answer; None for any time.

    Attributes:
        revived: Peers that were replaced since the last step or reset, with the infos of the resets that followed. Episodes of
            their environments have ended, and nothing has told so yet.
        entropy: What new seeds are drawn from.
        closed: Whether the environments are closed.
    """

    def __init__(self, fleet: Fleet, timeout: float | None) -> None:
        self.fleet = fleet
        self.revived: dict[int, list[dict[str, Any]]] = {}
        self.entropy: int | None = None
        self.closed = False
        self._timeout = timeout
        self._begun: deque[int] = deque()  # peers that were asked for something
        self._losses = 0
        self._homes = [(number, row) for number, peer in enumerate(fleet.peers) for row in range(len(peer.rows))]
        self._attributes: dict[int, dict[str, Any]] = {}
        self._odd_codes = odd_codes(fleet.description.action_space)
        self._masks_asked = False  # since the last step
        self._masked = False  # whether the last step has left masks in the batch
        self._fresh_masks: set[int] = set()  # environments whose masks are there, and valid

    def begin_step(self, actions: Any) -> None:
        """Lets all environments start a step, but for those of `revived`.

        Raises:
            ValueError: These are no actions for all of them; nothing has begun then.
        """
        self._settle()
        batch = self.fleet.batch
        code = batch.action_code(actions)
        if code < 0 or code in self._odd_codes:
            check_actions(actions, batch.layout.n_envs, self.fleet.description.action_space)
        if code >= 0:
            batch.actions(code)[:] = actions
        self._masked, self._masks_asked = self._masks_asked, False
        self._fresh_masks.clear()
        muster = self.fleet.gathering
        if muster is not None:
            muster.prepare()
        together = muster is not None and muster.is_complete and code >= 0 and not self.revived
        for number, peer in enumerate(self.fleet.peers):
            if number not in self.revived:
                # Noted first: an interrupt may come between, and a peer that was not reached is finished at once.
                self._begun.append(number)
                if not together or isinstance(peer, InlinePeer):
                    peer.begin_step(actions, code, masked=self._masked)
        if muster is not None:
            if together:
                muster.post(step_post(code, masked=self._masked))
            muster.ring()

    def finish_step(self) -> list[Extra]:
        """Waits for the step; what is in no array comes back, with rows counted from the first environment."""
        self._check_open()
        results, lost = self._finish()
        self._revive_all(lost)
        if self._masked:
            forms = self.fleet.batch.mask_forms
            self._fresh_masks = {row for number in results for row in self.fleet.peers[number].rows if forms[row]}
        extras: list[Extra] = []
        for number, found in results.items():
            if found:
                start = self.fleet.peers[number].rows.start
                extras.extend((start + row, info, reset_info) for row, info, reset_info in found)
        return extras

    def reset(self, arguments: Sequence[Reset]) -> list[dict[str, Any]]:
        """Resets all environments; an actor that is lost meanwhile does it again when replaced.

        Args:
            arguments: Seed and options of each environment.

        Returns:
            The infos.
        """
        self._settle()
        self.revived.clear()
        self._fresh_masks.clear()
        for number, peer in enumerate(self.fleet.peers):
            self._begun.append(number)
            peer.begin(Command.RESET, range(len(peer.rows)), arguments[peer.rows.start : peer.rows.stop])
        results, lost = self._finish()
        for number, loss in lost.items():
            rows = self.fleet.peers[number].rows
            results[number] = self._replace(number, loss, arguments[rows.start : rows.stop])
        return [info for number in sorted(results) for info in results[number]]

    def ask(self, command: Command, indices: Sequence[int], *arguments: Any) -> list[Any]:
        """Has environments carry out a command, those of different processes at the same time.

        Args:
            command: What; `Command.RESET` has a method of its own.
            indices: Which environments; an index may occur twice.
            *arguments: What the command takes.

        Returns:
            Their results, in the order of `indices`.

        Raises:
            Exception: What the first environment has raised; nothing is closed then.
        """
        self._settle()
        if command not in _HARMLESS:
            self._fresh_masks.clear()
        homes = [self._homes[index] for index in indices]
        positions: dict[int, list[int]] = {}
        for position, (number, _) in enumerate(homes):
            positions.setdefault(number, []).append(position)
        answers: list[Any] = [None] * len(homes)
        while positions:
            for number, asked in positions.items():
                self._begun.append(number)
                self.fleet.peers[number].begin(command, [homes[position][1] for position in asked], arguments)
            results, lost = self._finish(ends=False)
            for number, values in results.items():
                for position, value in zip(positions.pop(number), values, strict=True):
                    answers[position] = value
            # Those that were lost are asked again once they are replaced.
            self._revive_all(lost)
        return answers

    def masks(self, indices: Sequence[int]) -> list[Any]:
        """Asks for action masks.

        Once asked, each step leaves the masks in memory beside its results, for as long as they are asked for after every
        step. A mask is given from there once, since a second call of the environment's method may tell something else.

        Args:
            indices: Which environments.

        Returns:
            What their `action_masks` have returned.

        Raises:
            Exception: What the first environment has raised; nothing is closed then.
        """
        self._settle()
        stale = [index for index in indices if index not in self._fresh_masks] or len(set(indices)) < len(indices)
        # Where the last step has left them in vain, the next one shall not.
        self._masks_asked = not (self._masked and stale)
        if stale:
            return self.ask(Command.ENV_METHOD, indices, METHOD, (), {})
        self._fresh_masks.difference_update(indices)
        batch = self.fleet.batch
        entries = batch.layout.mask
        return [read_mask(int(batch.mask_forms[index]), batch.masks[index], entries) for index in indices]

    def remember(self, indices: Sequence[int], name: str, value: Any) -> None:
        """Notes an attribute that was set, for actors that replace others."""
        for index in indices:
            self._attributes.setdefault(index, {})[name] = value

    def close(self) -> EnvFailure | None:
        """Closes all environments; returns the first failure of one that has failed in it."""
        self.closed = True
        return self.fleet.close()

    def _settle(self) -> None:
        """Makes sure that nothing is begun: what an interrupt has left is waited for and forgotten."""
        self._check_open()
        if self._begun:
            _, lost = self._finish()
            self._revive_all(lost)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("the environments are closed")

    def _finish(self, *, ends: bool = True) -> tuple[dict[int, list[Any]], dict[int, PeerLost]]:
        """Waits for everything that was begun.

        Args:
            ends: Whether an environment's exception closes everything; otherwise it is raised as it was.

        Returns:
            The results of the peers that have answered, and why the others have not.
        """
        deadline = self._deadline()
        results: dict[int, list[Any]] = {}
        lost: dict[int, PeerLost] = {}
        failure: EnvFailure | None = None
        peers, begun, muster = self.fleet.peers, self._begun, self.fleet.gathering
        while begun:
            number = begun[0]
            if muster is not None and not isinstance(peers[number], InlinePeer):
                muster.gather(deadline)
                if muster.is_complete and muster.take_empty():
                    results.update((each, []) for each in begun)
                    begun.clear()
                    break
                muster = None
            try:
                result = peers[number].finish(deadline)
            except PeerLost as loss:
                lost[number] = loss
            else:
                if not isinstance(result, EnvFailure):
                    results[number] = result
                elif ends:
                    self._abandon()
                    raise result.error()
                else:
                    failure = failure or result
            begun.popleft()
        if failure is not None:
            self._revive_all(lost)
            raise failure.original()
        return results, lost

    def _revive_all(self, lost: dict[int, PeerLost]) -> None:
        """Replaces lost peers in the middle of their environments' episodes."""
        for number, loss in lost.items():
            self.revived[number] = self._replace(number, loss, None)

    def _replace(self, number: int, loss: PeerLost, arguments: Sequence[Reset] | None) -> list[dict[str, Any]]:
        """Replaces a lost peer, as often as that takes, and resets its environments.

        Args:
            number: Which peer.
            loss: Why.
            arguments: Seed and options of each reset; None draws new seeds.

        Returns:
            The infos of the resets.
        """
        cause = loss
        try:
            while True:
                peer = self.fleet.replace(number, cause)
                self._losses += 1
                try:
                    for row, index in enumerate(peer.rows):
                        for name, value in self._attributes.get(index, {}).items():
                            self._demand(peer, Command.SET_ATTR, [row], (name, value))
                    resets = arguments or [(self._new_seed(index), None) for index in peer.rows]
                    return self._demand(peer, Command.RESET, range(len(peer.rows)), resets)
                except PeerLost as again:
                    cause = again
        except (ActorError, EnvError):
            self._abandon()
            raise

    def _demand(self, peer: Peer, command: Command, rows: Sequence[int], arguments: Sequence[Any]) -> list[Any]:
        peer.begin(command, rows, arguments)
        result = peer.finish(self._deadline())
        if isinstance(result, EnvFailure):
            raise result.error()
        return result

    def _deadline(self) -> float | None:
        return None if self._timeout is None else time.monotonic() + self._timeout

    def _new_seed(self, index: int) -> int:
        """Draws a seed for an environment that has to start anew, apart from those that follow from the user's seed."""
        if self.entropy is None:
            self.entropy = int(np.random.SeedSequence().generate_state(1)[0])
        seed = int(np.random.SeedSequence([self.entropy, index, self._losses]).generate_state(1)[0])
        logger.info("environment %d gets the seed %d", index, seed)
        return seed

    def _abandon(self) -> None:
        """Closes everything because of an error that is about to be raised."""
        failure = self.close()
        if failure is not None:
            logger.warning("environment %d has failed in its close, too: %s", failure.index, failure.summary)
