"""Actors stay on the learner's node while it has room, and spread to as few others as possible then."""

from __future__ import annotations

import pytest

from lit_sb3_ray.scale.placement import choose_nodes
from lit_sb3_ray.scale.resources import Supply


@pytest.mark.parametrize(
    ("free", "actors", "cpus", "chosen"),
    [
        ({"here": 16, "b": 16}, 8, 1.0, ["here"] * 8),
        ({"b": 16, "here": 16}, 8, 1.0, ["here"] * 8),
        ({"here": 2, "b": 3, "c": 8}, 6, 1.0, ["here", "here", "c", "c", "c", "c"]),
        ({"here": 0, "b": 3, "c": 8}, 9, 1.0, ["c"] * 8 + ["b"]),
        ({"here": 1.5, "b": 1.5}, 3, 1.0, ["here", "b", "here"]),
        ({"here": 1, "b": 1}, 4, 0.5, ["here", "here", "b", "b"]),
        ({"here": 0}, 2, 1.0, ["here", "here"]),
    ],
)
def test_the_learner_s_node_comes_first_and_then_the_emptiest(free, actors, cpus, chosen):
    parts = tuple(map(float, free.values()))
    supply = Supply(totals=parts, free=parts, pool="Ray", nodes=tuple(free))
    assert choose_nodes(supply, actors, cpus, "here") == chosen
