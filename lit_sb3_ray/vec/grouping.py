"""Which environments live together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from lit_sb3_ray.errors import ConfigError

EnvsPerActor = int | Literal["auto"]


@dataclass(frozen=True)
class Grouping:
    """How the environments are split.

    Attributes:
        inline: Environments that the learner's own process steps; may be empty.
        actors: Environments of each actor.
    """

    inline: range
    actors: tuple[range, ...]

    @property
    def n_envs(self) -> int:
        """How many environments there are."""
        return len(self.inline) + sum(map(len, self.actors))


def group(n_envs: int, envs_per_actor: EnvsPerActor, cores: int, *, inline: bool) -> Grouping:
    """Splits environments into shares of nearly equal size.

    Args:
        n_envs: How many environments.
        envs_per_actor: The most that one actor may have; `"auto"` makes as many shares as there are cores.
        cores: Processors for environments, the learner's own included.
        inline: Whether `"auto"` leaves one share, a smallest one, in the learner's process.

    Returns:
        The shares; the learner's comes first.

    Raises:
        ConfigError: `envs_per_actor` is neither `"auto"` nor a positive integer.
    """
    if envs_per_actor == "auto":
        if inline:
            shares = max(1, min(n_envs, cores))
            own, *others = sorted(_split(0, n_envs, shares), key=len)
            return Grouping(range(len(own)), tuple(_split(len(own), n_envs, len(others))) if others else ())
        return Grouping(range(0), tuple(_split(0, n_envs, max(1, min(n_envs, cores)))))
    if type(envs_per_actor) is not int or envs_per_actor < 1:
        raise ConfigError(f"envs_per_actor must be 'auto' or a positive integer, got {envs_per_actor!r}")
    return Grouping(range(0), tuple(_split(0, n_envs, -(-n_envs // envs_per_actor))))


def _split(start: int, stop: int, parts: int) -> list[range]:
    """Cuts a range into parts whose sizes differ by at most one."""
    size, larger = divmod(stop - start, parts)
    bounds = [start]
    for part in range(parts):
        bounds.append(bounds[-1] + size + (part < larger))
    return [range(low, high) for low, high in pairwise(bounds)]
