"""Counting CPUs, in supplies that are made up; the Ray that some tests need is asked whether it may grow."""

from __future__ import annotations

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.resources import Request, Supply, grant


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
    assert sum(there.rooms(there.fair_share(actors))) >= actors


def test_a_fair_share_of_nothing_free_is_one_of_everything():
    assert supply(4.0, free=[0.0]).fair_share(8) == 0.5


def test_of_nothing_at_all_each_is_asked_for_a_whole_cpu_so_that_the_cluster_grows():
    assert supply(0.0, 0.0).fair_share(8) == 1.0


def test_an_actor_must_fit_one_part():
    assert supply(1.5, 1.5).rooms(1.0) == (1, 1)
    assert supply(3.0).rooms(1.0) == (3,)
    assert supply(0.3).rooms(0.1) == (3,)


@pytest.mark.usefixtures("ray_instance")
def test_a_request_that_can_never_be_met_is_refused_with_the_numbers():
    with pytest.raises(
        ConfigError, match="64 env actors with 1 CPUs each need 64 CPUs, but Ray has 4 for them, 3 free now: ask for fewer"
    ):
        grant([Request("env actors", 64, 1.0)], supply(4.0, free=[3.0]), "ask for fewer")
    with pytest.raises(ConfigError, match="at most 2 of them together"):
        grant([Request("env actors", 1, 3.0)], supply(2.0, 2.0), "ask for fewer")


@pytest.mark.usefixtures("ray_instance")
def test_requests_are_counted_together():
    training, evaluation = Request("training actors", 3, 1.0), Request("evaluation actors", 2, 1.0)
    assert grant([training], supply(4.0), "") == grant([evaluation], supply(4.0), "") == [1.0]
    told = "3 training actors with 1 CPUs each and 2 evaluation actors with 1 CPUs each need 5 CPUs, but Ray has 4 for them"
    with pytest.raises(ConfigError, match=told):
        grant([training, evaluation], supply(4.0), "ask for fewer")


def test_those_that_ask_for_no_number_share_what_is_left():
    sharing, fixed = Request("env actors", 4), Request("workers", 2, 1.0)
    assert grant([sharing], supply(4.0), "") == [1.0]
    assert grant([sharing, fixed], supply(4.0), "") == [0.5, 1.0]
    assert grant([fixed, sharing, Request("more", 4)], supply(4.0), "") == [1.0, 0.25, 0.25]


@pytest.mark.usefixtures("ray_instance")
def test_those_that_share_are_refused_when_nothing_is_left_for_them():
    with pytest.raises(ConfigError, match="4 env actors with 1 CPUs each and 4 workers with 1 CPUs each need 8 CPUs"):
        grant([Request("env actors", 4), Request("workers", 4, 1.0)], supply(4.0), "ask for fewer")


def test_large_and_small_actors_are_fitted_into_nodes():
    large, small = Request("large", 1, 3.0), Request("small", 3, 1.0)
    assert grant([small, large], supply(3.0, 3.0), "") == [1.0, 3.0]


def test_a_request_that_has_to_wait_is_not_refused():
    assert grant([Request("env actors", 4, 1.0)], supply(4.0, free=[0.0]), "ask for fewer") == [1.0]
