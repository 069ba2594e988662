"""Scores on one scale: 0 for what a random agent gets in an environment, 1 for an acceptable agent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lit_sb3_ray.errors import ConfigError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreRange:
    """The returns that count as 0 and as 1.

    Attributes:
        low: A random agent's.
        high: An acceptable agent's; above `low`.
    """

    low: float
    high: float

    def normalize(self, scores: Array) -> Array:
        """Puts returns on this scale."""
        scaled: Array = (scores - self.low) / (self.high - self.low)
        return scaled


REFERENCE_SCORES: Mapping[str, ScoreRange] = {
    "HalfCheetahBulletEnv-v0": ScoreRange(-1400, 3000),
    "AntBulletEnv-v0": ScoreRange(300, 3500),
    "HopperBulletEnv-v0": ScoreRange(20, 2500),
    "Walker2DBulletEnv-v0": ScoreRange(200, 2500),
    "LunarLanderContinuous-v3": ScoreRange(-200, 250),
    "BipedalWalker-v3": ScoreRange(-100, 300),
}
"""rl_zoo3's ranges, by the exact ids of their environments."""


def parse_ranges(words: Sequence[str], flag: str) -> dict[str, ScoreRange]:
    """Reads ranges from the command line.

    Args:
        words: `<environment>=<low>,<high>` each.
        flag: The flag they were given to.

    Raises:
        ConfigError: A word is no such range.
    """
    ranges = {}
    for word in words:
        env, _, ends = word.rpartition("=")
        try:
            low, high = (float(end) for end in ends.split(","))
        except ValueError:
            low = high = math.nan
        if not env or not -math.inf < low < high < math.inf:
            raise ConfigError(f"{flag} {word!r}: give the environment and its scores for 0 and 1, such as CartPole-v1=20,500")
        ranges[env] = ScoreRange(low, high)
    return ranges
