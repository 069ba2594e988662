"""What learners that train one model together agree on: what comes next, how far they are, when an update is enough."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray.lit.exchange import Exchange

Episode = tuple[int, dict[str, Any], Any]
"""Index of an env among the learner's own, what its Monitor tells of an episode, and `is_success` or None."""


class Order(IntEnum):
    """What the first learner lets all do next."""

    GO = 0
    MARK = 1
    SAVE = 2
    STOP = 3


class Tally(BaseCallback):
    """Counts the env steps of all learners, and keeps the episodes that have ended in this one."""

    def __init__(self, size: int, at_step: Callable[[], None]) -> None:
        """Prepares counting.

        Args:
            size: How many learners there are.
            at_step: Called at every step.
        """
        super().__init__()
        self.size = size
        self.at_step = at_step
        self.episodes: list[Episode] = []

    def _on_step(self) -> bool:
        self.at_step()
        model: Any = self.model
        model.num_timesteps += (self.size - 1) * model.env.num_envs
        self.num_timesteps = model.num_timesteps
        for index in np.flatnonzero(self.locals["dones"]):
            info = self.locals["infos"][index]
            if info.get("episode") is not None:
                self.episodes.append((int(index), dict(info["episode"]), info.get("is_success")))
        return True

    def take_episodes(self) -> list[Episode]:
        """The episodes that have ended since the last call."""
        episodes, self.episodes = self.episodes, []
        return episodes

    def state_dict(self) -> dict[str, Any]:
        """Nothing: at a boundary there is nothing left."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes nothing, and forgets what belongs to an iteration that was given up."""
        self.episodes = []


class AgreedLimit:
    """A limit that each learner compares its own value with, and all find the same: the mean of their values is compared.

    It stands in for PPO's `target_kl`, in `value > 1.5 * target_kl`.
    """

    # Lets numpy leave the comparison to this class.
    __array_ufunc__ = None

    def __init__(self, value: float, exchange: Exchange) -> None:
        """Takes the limit.

        Args:
            value: The limit.
            exchange: The way to the other learners.
        """
        self.value = value
        self.exchange = exchange

    def __rmul__(self, factor: float) -> AgreedLimit:
        """A multiple of the limit."""
        return AgreedLimit(factor * self.value, self.exchange)

    def __lt__(self, other: Any) -> bool:
        """Whether the mean of what the learners compare with it is larger."""
        values = torch.tensor([float(other)], dtype=torch.float64)
        self.exchange.sum(values)
        return float(values[0]) / self.exchange.size > self.value
