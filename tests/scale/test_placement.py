"""Actors stay on the learner's node while it has room, and spread to as few others as possible then."""

from __future__ import annotations

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.placement import check_placement, choose_nodes, fitting
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


@pytest.mark.parametrize(
    ("strategy", "chosen"),
    [
        ("strict-pack", ["here"] * 6),
        ("pack", ["here", "here", "c", "c", "c", "b"]),
        ("spread", ["here", "c", "b", "here", "c", "c"]),
    ],
)
def test_a_strategy_is_kept_to(strategy, chosen):
    supply = Supply(totals=(2.0, 1.0, 3.0), free=(2.0, 1.0, 3.0), pool="Ray", nodes=("here", "b", "c"))
    assert choose_nodes(supply, 6, 1.0, "here", strategy) == chosen


def test_there_are_no_other_strategies():
    check_placement(None)
    with pytest.raises(ConfigError, match="did you mean 'spread'"):
        check_placement("spred")


@pytest.mark.parametrize(
    ("bundles", "nodes", "count"),
    [
        ([{"CPU": 1}] * 3, [{"CPU": 2}, {"CPU": 2}], 1),
        ([{"CPU": 1}] * 2, [{"CPU": 2}, {"CPU": 2}], 2),
        ([{"CPU": 2}, {"CPU": 1}], [{"CPU": 2}, {"CPU": 1}], 1),
        ([{"CPU": 1, "GPU": 0.5}, {"CPU": 1}], [{"CPU": 1, "GPU": 1}, {"CPU": 4}], 1),
        ([{"CPU": 3}], [{"CPU": 2}, {"CPU": 2}], 0),
    ],
)
def test_groups_are_fitted_onto_nodes(bundles, nodes, count):
    assert fitting(bundles, nodes, 10) == count
    assert fitting(bundles, nodes, 1) == min(count, 1)
