"""The share that the learner's own process steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from lit_sb3_ray.vec.failures import EnvFailure
from lit_sb3_ray.vec.group import Command, EnvGroup
from lit_sb3_ray.vec.peer import Peer


class InlinePeer(Peer):
    """Environments of this process; what is begun is done in `finish`, while the actors are at work.

    Args:
        rows: The share's environments.
        group: The environments, built.
    """

    def __init__(self, rows: range, group: EnvGroup) -> None:
        super().__init__(rows)
        self.group = group
        self._part = slice(rows.start, rows.stop)
        self._begun: Callable[[], list[Any] | EnvFailure] | None = None

    def begin_step(self, actions: Any, code: int, *, masked: bool) -> None:
        """Takes the actions; see `Peer`."""
        # A copy, since an environment may keep or change its action.
        own = actions[self._part].copy() if code >= 0 else [actions[row] for row in self.rows]
        self._begun = lambda: self._step(own, masked)

    def begin(self, command: Command, rows: Sequence[int], arguments: Sequence[Any]) -> None:
        """Takes a command; see `Peer`."""
        self._begun = lambda: self.group.execute(command, rows, arguments)

    def finish(self, deadline: float | None) -> list[Any] | EnvFailure:
        """Does what was begun, however long it takes; see `Peer`."""
        begun, self._begun = self._begun, None
        # Nothing is left to do when an interrupt has broken it off.
        return [] if begun is None else begun()

    def begin_close(self) -> None:
        """Forgets what was begun; see `Peer`."""
        self._begun = None

    def finish_close(self, deadline: float) -> EnvFailure | None:
        """Closes the environments; see `Peer`."""
        return self.group.close()

    def kill(self) -> None:
        """Closes the environments: their process is the learner itself."""
        self.group.close()

    def _step(self, actions: Any, masked: bool) -> list[Any] | EnvFailure:
        extras = self.group.step(actions, masked=masked)
        if isinstance(extras, EnvFailure):
            return extras
        # Environments may write into their infos again, so the learner gets copies.
        return [(row, None if info is None else deepcopy(info), reset_info) for row, info, reset_info in extras]
