"""Which nodes actors go to."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import unknown

if TYPE_CHECKING:
    from lit_sb3_ray.scale.resources import Supply

STRICT_PACK, PACK, SPREAD = "strict-pack", "pack", "spread"
STRATEGIES: Mapping[str, str] = MappingProxyType({STRICT_PACK: "STRICT_PACK", PACK: "PACK", SPREAD: "SPREAD"})
"""How an experiment's actors are put on nodes, and what Ray calls it: all on the learner's, on as few as hold them, on many.

None, in their stead, is `strict-pack` where one node can have them all, and `pack` where none can.
"""

# Ray counts resources in ten-thousandths.
_GRAIN = 1e-4


def check_placement(strategy: str | None) -> None:
    """Refuses a strategy that there is not.

    Raises:
        ConfigError: It is none of `STRATEGIES`.
    """
    if strategy is not None and strategy not in STRATEGIES:
        raise unknown("placement", str(strategy), STRATEGIES)


def choose_nodes(supply: Supply, actors: int, cpus: float, here: str, strategy: str | None = None) -> list[str]:
    """Chooses a node for each of some actors.

    Args:
        supply: What the nodes have.
        actors: How many actors.
        cpus: CPUs of each.
        here: The learner's node. It comes first, since its actors need no network, and then the emptiest.
        strategy: One of `STRATEGIES`, or None.

    Returns:
        Ids of nodes; `here` for actors that have no room anywhere now, which Ray then keeps waiting or places where it can.
    """
    if strategy == STRICT_PACK:
        return [here] * actors
    room = dict(zip(supply.nodes, supply.rooms(cpus), strict=True))
    others = sorted((node for node in room if node != here), key=lambda node: -room[node])
    seats = [[node] * room.get(node, 0) for node in (here, *others)]
    if strategy == SPREAD:
        turns = itertools.zip_longest(*seats)
        chosen = [node for turn in turns for node in turn if node is not None]
    else:
        chosen = [node for part in seats for node in part]
    return (chosen + [here] * actors)[:actors]


def fitting(bundles: Sequence[Mapping[str, float]], nodes: Sequence[Mapping[str, float]], most: int) -> int:
    """Counts how often a group of bundles fits onto nodes, each bundle on one of them, as far as one can tell beforehand.

    Args:
        bundles: Resources of each.
        nodes: What each node has.
        most: Where to stop counting.
    """
    left = [dict(node) for node in nodes]
    largest_first = sorted(bundles, key=lambda bundle: -sum(bundle.values()))
    for count in range(most):
        for bundle in largest_first:
            if not _take(bundle, left):
                return count
    return most


def _take(bundle: Mapping[str, float], left: list[dict[str, float]]) -> bool:
    for node in left:
        if all(node.get(name, 0.0) >= amount - _GRAIN / 2 for name, amount in bundle.items()):
            for name, amount in bundle.items():
                node[name] -= amount
            return True
    return False
