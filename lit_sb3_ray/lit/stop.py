"""Stopping from outside: at the next iteration boundary, or back at the last one when the next is far."""

from __future__ import annotations

from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray.lit.state import Snapshot

# Iterations shorter than this many seconds are waited for; before longer ones the state is copied.
SHORT = 0.25


class Interrupted(BaseException):
    """Raised in the middle of an iteration that has been given its time; never leaves the module that runs it."""


@dataclass
class StopGuard:
    """Whether a stop was asked for, and what to go back to.

    Attributes:
        requested: A stop was asked for.
        running: An iteration is under way, so that `Interrupted` may be raised.
        snapshot: The state at the last boundary, if the running iteration may be long.
        seconds: How long the last iteration took; infinite before the first.
    """

    requested: bool = False
    running: bool = False
    snapshot: Snapshot | None = None
    seconds: float = float("inf")

    @property
    def cuts_iteration(self) -> bool:
        """Whether the running iteration is to be given up."""
        return self.requested and self.snapshot is not None


class StopStep(BaseCallback):
    """Ends a rollout that is to be given up, at its next env step."""

    def __init__(self, guard: StopGuard) -> None:
        super().__init__()
        self.guard = guard

    def _on_step(self) -> bool:
        return not self.guard.cuts_iteration

    def state_dict(self) -> dict[str, object]:
        """Nothing: a stop is not part of the training's state."""
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Takes nothing."""
