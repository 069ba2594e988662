"""How fast a training is, told once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from lit_sb3_ray.scale.metrics import ENV_STEPS, ROLLOUT, UPDATE, Metric, is_connected, tell

_EVERY_S = 1.0
_PARTS = {"collect_rollouts": ROLLOUT, "train": UPDATE}

Profile = Callable[[str], AbstractContextManager[Any]]


def observed(profile: Profile, num_timesteps: Callable[[], int]) -> Profile:
    """Lets the parts of an iteration be timed for Ray's dashboard where there is one to tell; nothing is added anywhere else.

    Args:
        profile: What times an action already.
        num_timesteps: Tells the env steps done.

    Returns:
        What times an action from now on.
    """
    return Telemetry(profile, num_timesteps).profile if is_connected() else profile


class Telemetry:
    """Times the rollouts and updates of a training."""

    def __init__(self, profile: Profile, num_timesteps: Callable[[], int]) -> None:
        """Begins; see `observed`."""
        self._inner = profile
        self._num_timesteps = num_timesteps
        self._since, self._steps = time.monotonic(), num_timesteps()
        self._spent: dict[Metric, tuple[float, int]] = {}

    @contextmanager
    def profile(self, action: str) -> Iterator[None]:
        """Times an action, and tells if it is time."""
        begun = time.monotonic()
        with self._inner(action):
            yield
        now = time.monotonic()
        part = _PARTS.get(action)
        if part is not None:
            seconds, count = self._spent.get(part, (0.0, 0))
            self._spent[part] = seconds + now - begun, count + 1
        if now - self._since > _EVERY_S:
            self._tell(now)

    def _tell(self, now: float) -> None:
        steps = self._num_timesteps()
        tell(ENV_STEPS, (steps - self._steps) / (now - self._since))
        for part, (seconds, count) in self._spent.items():
            tell(part, seconds / count)
        self._since, self._steps = now, steps
        self._spent.clear()
