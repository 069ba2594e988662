"""Stopping from outside: at the next iteration boundary, or back at an earlier one when the next is far."""

from __future__ import annotations

from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray.lit.state import Snapshot

# Seconds that the running iteration gets to end by itself; one that is known to take longer is cut at once.
PATIENCE = 2.0
# Seconds that the step of the env, or the update, gets after that.
LAST_CALL = 0.5
# Before an iteration that is likely to take longer than this many seconds the state is copied.
SHORT = 0.25
# Among shorter ones it is copied once in so many seconds, for the one in which the env hangs.
COPY_EVERY = 0.5
# Copying may take one part in so many of the training's time.
COPY_SHARE = 50


class Interrupted(BaseException):
    """Raised in the middle of an iteration that has been given its time; never leaves the module that runs it."""


@dataclass
class StopGuard:
    """Whether a stop was asked for, and what to go back to.

    Attributes:
        armed: Somebody may ask for a stop, so that the state is copied; without that no time is spent on it.
        requested: A stop was asked for.
        overdue: The running iteration has had its time.
        running: An iteration is under way, so that `Interrupted` may be raised.
        cut: The running iteration was ended before its end.
        snapshot: The state at the last boundary, or at an earlier one where iterations are short; None before the first.
        stale: What was saved since is newer than the snapshot, which is to be taken anew.
        seconds: How long the last iteration took; infinite before the first.
        taken: When the snapshot was taken, by the monotonic clock.
        cost: Seconds that taking it took.
    """

    armed: bool = False
    requested: bool = False
    overdue: bool = False
    running: bool = False
    cut: bool = False
    snapshot: Snapshot | None = None
    stale: bool = False
    seconds: float = float("inf")
    taken: float = 0.0
    cost: float = 0.0

    @property
    def cuts_rollout(self) -> bool:
        """Whether the running rollout is to end at its next env step."""
        return self.requested and self.snapshot is not None and (self.overdue or self.seconds > PATIENCE)

    def wants_snapshot(self, now: float) -> bool:
        """Whether the state is to be copied before the next iteration.

        Args:
            now: The monotonic clock's time.
        """
        if not self.armed:
            return False
        if self.snapshot is None or self.stale or self.seconds > max(SHORT, COPY_SHARE * self.cost):
            return True
        return now - self.taken > max(COPY_EVERY, COPY_SHARE * self.cost)


class StopStep(BaseCallback):
    """Ends a rollout that is to be given up, at its next env step."""

    def __init__(self, guard: StopGuard) -> None:
        super().__init__()
        self.guard = guard

    def _on_step(self) -> bool:
        self.guard.cut = self.guard.cut or self.guard.cuts_rollout
        return not self.guard.cut

    def state_dict(self) -> dict[str, object]:
        """Nothing: a stop is not part of the training's state."""
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Takes nothing."""
