"""Counting CPUs, without a Ray."""

from __future__ import annotations

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.resources import Supply, check_request


def supply(*totals, free=None):
    return Supply(totals=totals, free=totals if free is None else tuple(free), pool="Ray")


@pytest.mark.parametrize(
    ("parts", "actors", "share"),
    [
        ((4.0,), 2, 1.0),
        ((4.0,), 8, 0.5),
        ((4.0,), 3, 1.0),
        ((2.0,), 3, 0.6666),
        ((1.0, 1.0), 3, 0.5),
        ((2.0, 1.0), 3, 1.0),
        ((3.0, 1.0), 8, 0.5),
        ((8.0, 0.5), 8, 1.0),
    ],
)
def test_a_fair_share_is_the_most_that_all_can_have(parts, actors, share):
    there = supply(*parts)
    assert there.fair_share(actors) == pytest.approx(share)
    assert there.room(there.fair_share(actors)) >= actors


def test_a_fair_share_of_nothing_free_is_one_of_everything():
    assert supply(4.0, free=[0.0]).fair_share(8) == 0.5


def test_an_actor_must_fit_one_part():
    assert supply(1.5, 1.5).room(1.0) == 2
    assert supply(3.0).room(1.0) == 3
    assert supply(0.3).room(0.1) == 3


def test_a_request_that_can_never_be_met_is_refused_with_the_numbers():
    with pytest.raises(
        ConfigError, match="64 env actors with 1 CPUs each need 64 CPUs, but Ray has 4 for them, 3 free now: ask for fewer"
    ):
        check_request(64, 1.0, supply(4.0, free=[3.0]), "ask for fewer")
    with pytest.raises(ConfigError, match="at most 2 of them together"):
        check_request(1, 3.0, supply(2.0, 2.0), "ask for fewer")


def test_a_request_that_has_to_wait_is_not_refused():
    check_request(4, 1.0, supply(4.0, free=[0.0]), "ask for fewer")
