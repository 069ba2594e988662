"""Where actors go: one node while it has room, as few others as possible then."""

from __future__ import annotations

from lit_sb3_ray.scale.resources import Supply


def choose_nodes(supply: Supply, actors: int, cpus: float, here: str) -> list[str]:
    """Chooses a node for each of some actors.

    Args:
        supply: What the nodes have.
        actors: How many actors.
        cpus: CPUs of each.
        here: The learner's node. It comes first, since its actors need no network, and then the emptiest.

    Returns:
        Ids of nodes; `here` for actors that have no room anywhere now, which Ray then keeps waiting or places where it can.
    """
    room = dict(zip(supply.nodes, supply.rooms(cpus), strict=True))
    others = sorted((node for node in room if node != here), key=lambda node: -room[node])
    seats = [node for node in (here, *others) for _ in range(room.get(node, 0))]
    return (seats + [here] * actors)[:actors]
