"""What Ray has to give, and whether a request for actors can be met."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import ray
from ray._private.state import available_resources_per_node
from ray.util.placement_group import PlacementGroup, get_current_placement_group, placement_group_table

from lit_sb3_ray.errors import ConfigError

# Ray counts resources in ten-thousandths.
_GRAIN = 1e-4
# How late it may count what was given back.
_LAG_S = 1.0
_LOOK_AGAIN_S = 0.02


@dataclass(frozen=True)
class Supply:
    """CPUs that actors of this process can be given.

    Attributes:
        totals: CPUs of each part, used or not. An actor must fit one part.
        free: CPUs of each part that nothing holds now.
        pool: What the parts belong to, for messages.
        group: The placement group they belong to; None when actors may go anywhere.
    """

    totals: tuple[float, ...]
    free: tuple[float, ...]
    pool: str
    group: PlacementGroup | None = None

    def room(self, cpus: float, *, used: bool = False) -> int:
        """Counts the actors of `cpus` CPUs each that fit: into what is free, or, with `used`, into all there is."""
        parts = self.totals if used else self.free
        return sum(int((part + _GRAIN / 2) // cpus) for part in parts)

    def fair_share(self, actors: int) -> float:
        """Finds the most CPUs, up to one, that each of some actors can have at once.

        Args:
            actors: How many actors.

        Returns:
            Their equal share of what is free, in Ray's grain; of everything when nearly nothing is free, so that they wait.
        """
        share = _even_share(self.free, actors)
        return share if share >= 0.01 else max(_even_share(self.totals, actors), _GRAIN)


class Releases:
    """When this process has last given CPUs back, which Ray's count shows only later."""

    last = -math.inf

    @classmethod
    def note(cls) -> None:
        """Notes that an actor of this process has just ended."""
        cls.last = time.monotonic()


def cpu_supply() -> Supply:
    """Counts the CPUs that this process can put actors on.

    Returns:
        Those of its placement group, less its own share, when it runs in one; those of the cluster otherwise.
    """
    group = get_current_placement_group()
    while True:
        supply = _cluster() if group is None else _reserved(group)
        if sum(supply.free) >= sum(supply.totals) or time.monotonic() > Releases.last + _LAG_S:
            return supply
        time.sleep(_LOOK_AGAIN_S)


def check_request(actors: int, cpus: float, supply: Supply, remedy: str) -> None:
    """Refuses a request that can never be met.

    Args:
        actors: How many actors are asked for.
        cpus: CPUs of each.
        supply: What there is.
        remedy: What the user can change, for the message.

    Raises:
        ConfigError: There is no room for them even when everything is free; the message has the numbers.
    """
    if supply.room(cpus, used=True) < actors:
        raise ConfigError(f"{numbers(actors, cpus, supply)}: {remedy}")


def numbers(actors: int, cpus: float, supply: Supply) -> str:
    """Says what is asked for and what there is."""
    largest = f", at most {max(supply.totals, default=0.0):g} of them together" if len(supply.totals) > 1 else ""
    return (
        f"{actors} env actors with {cpus:g} CPUs each need {actors * cpus:g} CPUs, but {supply.pool} has "
        f"{sum(supply.totals):g} for them{largest}, {sum(supply.free):g} free now"
    )


def _cluster() -> Supply:
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    totals = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]}
    free = available_resources_per_node()  # type: ignore[no-untyped-call]
    return Supply(
        totals=tuple(totals.values()),
        free=tuple(free.get(node, {}).get("CPU", 0.0) for node in totals),
        pool="Ray",
    )


def _reserved(group: PlacementGroup) -> Supply:
    """Counts the bundles of a placement group; its creator's own share is taken from the bundle that holds this process."""
    bundles = placement_group_table(group)["bundles"]
    own = ray.get_runtime_context().get_assigned_resources()  # type: ignore[no-untyped-call]
    available = ray.available_resources()  # type: ignore[no-untyped-call]
    totals, free = [], []
    for index, bundle in sorted(bundles.items()):
        name = f"CPU_group_{index}_{group.id.hex()}"
        totals.append(bundle.get("CPU", 0.0) - own.get(name, 0.0))
        free.append(available.get(name, 0.0))
    if not any(name.startswith("CPU_group_") for name in own) and totals:
        totals[0] -= own.get("CPU", 0.0)
    return Supply(totals=tuple(totals), free=tuple(free), pool="the trial's placement group", group=group)


def _even_share(parts: Sequence[float], actors: int) -> float:
    """Gives actors to parts one at a time, each to the part that then leaves its actors the most; returns the least."""
    if not parts:
        return 0.0
    counts = [0] * len(parts)
    for _ in range(actors):
        best = max(range(len(parts)), key=lambda i: parts[i] / (counts[i] + 1))
        counts[best] += 1
    share = min(part / count for part, count in zip(parts, counts, strict=True) if count)
    return min(1.0, int(share / _GRAIN + 1e-6) * _GRAIN)
