"""SB3's Monitor where it is to keep further entries of an episode's last info, which an env may not give."""

from __future__ import annotations

from typing import Any, SupportsFloat

from stable_baselines3.common.monitor import Monitor

from lit_sb3_ray.envs.exits import GuardedMonitor
from lit_sb3_ray.errors import ConfigError


class KeywordMonitor(GuardedMonitor):
    """A Monitor that says which of its `info_keywords` is missing."""

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps the env.

        Raises:
            ConfigError: An episode has ended without one of the keywords.
        """
        try:
            return super().step(action)
        except KeyError as error:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            if place is None or place.tb_frame.f_code is not Monitor.step.__code__:
                raise  # It is the env's own.
            name = self.unwrapped.spec.id if self.unwrapped.spec is not None else type(self.unwrapped).__name__
            raise ConfigError(f"monitor_kwargs: info_keywords has {error}, which no info of {name} has") from error
