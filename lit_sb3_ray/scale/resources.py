"""What Ray has to give, and whether a request for actors can be met."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import ray
from ray._private.state import available_resources_per_node
from ray.util.placement_group import PlacementGroup, get_current_placement_group, placement_group_table

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.autoscaling import may_grow
from lit_sb3_ray.scale.processors import Cores, usable_cpus

# Ray counts resources in ten-thousandths.
_GRAIN = 1e-4
# How late it may count what was given back.
_LAG_S = 1.0
_LOOK_AGAIN_S = 0.02


@dataclass(frozen=True)
class Request:
    """Actors that are asked for.

    Attributes:
        what: What they are, for messages, e.g. `"env actors"`.
        actors: How many.
        cpus: CPUs of each; None for an equal share of what is free, one at most.
    """

    what: str
    actors: int
    cpus: float | None = None


@dataclass(frozen=True)
class Supply:
    """CPUs that actors of this process can be given.

    Attributes:
        totals: CPUs of each part, used or not. An actor must fit one part.
        free: CPUs of each part that nothing holds now.
        pool: What the parts belong to, for messages.
        group: The placement group they belong to; None when actors may go anywhere.
        nodes: The nodes that the parts are, by Ray's ids; empty when they are no nodes.
        is_fixed: Whether it stays as it is even where the cluster grows.
    """

    totals: tuple[float, ...]
    free: tuple[float, ...]
    pool: str
    group: PlacementGroup | None = None
    nodes: tuple[str, ...] = ()
    is_fixed: bool = False

    def rooms(self, cpus: float) -> tuple[int, ...]:
        """Counts the actors of `cpus` CPUs each that fit into what is free, part by part."""
        return tuple(int((part + _GRAIN / 2) // cpus) for part in self.free)

    def fair_share(self, actors: int) -> float:
        """Finds the most CPUs, up to one, that each of some actors can have at once.

        Args:
            actors: How many actors.

        Returns:
            Their equal share of what is free, in Ray's grain; of everything when nearly nothing is free, so that they wait.
            One when there is nothing at all, so that a cluster grows for them.
        """
        if not any(self.totals):
            return 1.0
        share = _even_share(self.free, actors)
        return share if share >= 0.01 else max(_even_share(self.totals, actors), _GRAIN)


class Releases:
    """When this process has last given CPUs back, which Ray's count shows only later."""

    last = -math.inf

    @classmethod
    def note(cls) -> None:
        """Notes that an actor of this process has just ended."""
        cls.last = time.monotonic()


def cpu_supply(*, here: bool = False) -> Supply:
    """Counts the CPUs that this process can put actors on.

    Args:
        here: Whether only those of this node count, where it runs in no placement group.

    Returns:
        Those of its placement group, less its own share, when it runs in one; those of the cluster otherwise.
    """
    group = get_current_placement_group()
    while True:
        supply = _cluster(this_node() if here else None) if group is None else _reserved(group)
        if sum(supply.free) >= sum(supply.totals) or time.monotonic() > Releases.last + _LAG_S:
            return supply
        time.sleep(_LOOK_AGAIN_S)


def grant(requests: Sequence[Request], supply: Supply, remedy: str) -> list[float]:
    """Settles the CPUs of actors that shall all be there at the same time.

    Args:
        requests: What is asked for.
        supply: What there is.
        remedy: What the user can change, for the message.

    Returns:
        CPUs of each actor, one number a request.

    Raises:
        ConfigError: There is no room for all of them even when everything is free, and the cluster cannot grow; the message
            has the numbers.
    """
    fixed = [size for request in requests if request.cpus is not None for size in [request.cpus] * request.actors]
    sharing = sum(request.actors for request in requests if request.cpus is None)
    share = 1.0
    if sharing:
        totals, free = _place(fixed, supply.totals), _place(fixed, supply.free)
        left = replace(supply, totals=totals or supply.totals, free=free or (0.0,) * len(supply.free))
        share = left.fair_share(sharing)
    granted = [share if request.cpus is None else request.cpus for request in requests]
    settled = [replace(request, cpus=cpus) for request, cpus in zip(requests, granted, strict=True)]
    sizes = [size for request, size in zip(requests, granted, strict=True) for _ in range(request.actors)]
    if _place(sizes, supply.totals) is None and (supply.is_fixed or not may_grow()):
        raise ConfigError(f"{numbers(settled, supply)}: {remedy}")
    return granted


def numbers(requests: Sequence[Request], supply: Supply) -> str:
    """Says what is asked for and what there is; the CPUs of all requests are known."""
    asked = " and ".join(f"{request.actors} {request.what} with {request.cpus:g} CPUs each" for request in requests)
    needed = sum(request.actors * (request.cpus or 0.0) for request in requests)
    largest = f", at most {max(supply.totals, default=0.0):g} of them together" if len(supply.totals) > 1 else ""
    return (
        f"{asked} need {needed:g} CPUs, but {supply.pool} has {sum(supply.totals):g} for them{largest}, "
        f"{sum(supply.free):g} free now"
    )


def free_cores(supply: Supply) -> Cores:
    """Counts the processors for environments: those that Ray has free, and this process's own.

    A process in a placement group has its own reserved there. Any other shares those of this node, which Ray may count as more
    than there are.
    """
    whole = [int(part + _GRAIN / 2) for part in supply.free]
    if supply.group is not None:
        return Cores(sum(whole) + 1)
    here = sum(cores for node, cores in zip(supply.nodes, whole, strict=True) if node == this_node())
    return Cores(min(here, usable_cpus()), sum(whole) - here)


def this_node() -> str:
    """Ray's id of the node that this process is on."""
    node: str = ray.get_runtime_context().get_node_id()
    return node


def _cluster(only: str | None) -> Supply:
    nodes = [node for node in ray.nodes() if node["Alive"] and only in (None, node["NodeID"])]  # type: ignore[no-untyped-call]
    totals = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in nodes}
    free = available_resources_per_node()  # type: ignore[no-untyped-call]
    return Supply(
        totals=tuple(totals.values()),
        free=tuple(free.get(node, {}).get("CPU", 0.0) for node in totals),
        pool="Ray" if only is None else "this node of Ray",
        nodes=tuple(totals),
        is_fixed=only is not None,
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
    return Supply(totals=tuple(totals), free=tuple(free), pool="the trial's placement group", group=group, is_fixed=True)


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


def _place(sizes: Sequence[float], parts: Sequence[float]) -> tuple[float, ...] | None:
    """Puts actors into parts, the largest first, each where the least is left then; None when one has no room."""
    left = list(parts)
    for size in sorted(sizes, reverse=True):
        fitting = [index for index, part in enumerate(left) if part >= size - _GRAIN / 2]
        if not fitting:
            return None
        tightest = min(fitting, key=lambda index: left[index])
        left[tightest] = max(0.0, left[tightest] - size)
    return tuple(left)
