"""`auto`: what is measured disturbs nothing, and the choice follows from it."""

from __future__ import annotations

import random
from functools import partial
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import slow_envs
import torch

import tiny_envs
from lit_sb3_ray.scale.processors import Cores
from lit_sb3_ray.vec import choosing
from lit_sb3_ray.vec.choosing import Prospect, batch_seconds, choose, measure
from lit_sb3_ray.vec.grouping import group

FAST, SLOW = 10e-6, 10e-3


class Noted(slow_envs.SlowEnv):
    """Draws from every generator there is, and notes what becomes of it."""

    seen: list

    def __init__(self, seconds=0.0):
        super().__init__(seconds)
        Noted.seen = ["built"]

    def reset(self, *, seed=None, options=None):
        Noted.seen.append(("reset", seed))
        return super().reset(seed=seed)

    def step(self, action):
        random.random()
        np.random.rand()
        torch.rand(1)
        Noted.seen.append("step")
        return super().step(action)

    def close(self):
        Noted.seen.append("closed")


def drawn():
    return random.random(), float(np.random.rand()), float(torch.rand(1))


def seeded():
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)


def prospect(n_envs=8, steps=1_000_000, cores=2, elsewhere=0, envs_per_actor="auto", inline=True, start_s=4.0):
    return Prospect(n_envs, steps, Cores(cores, elsewhere), envs_per_actor, inline, start_s)


def actors(choice):
    return None if choice.grouping is None else len(choice.grouping.actors)


def test_a_measurement_leaves_all_generators_and_no_open_environment():
    seeded()
    expected = drawn()
    seeded()
    measure(Noted)
    assert drawn() == expected
    assert Noted.seen[:2] == ["built", ("reset", 0)]
    assert Noted.seen[-1] == "closed"
    assert ("reset", None) in Noted.seen, "episodes that end are begun anew"


def test_a_measurement_takes_a_moment_and_tells_the_mean_of_a_step(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(choosing, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    class Timed(Noted):
        def __init__(self, takes):
            super().__init__()
            self.takes = takes

        def step(self, action):
            clock[0] += self.takes
            return super().step(action)

    # The first step may load what later ones find, and is not counted.
    for takes, steps in ((0.004, 1 + 13), (0.2, 1 + 1)):
        assert measure(partial(Timed, takes)) == pytest.approx(takes)
        assert Noted.seen.count("step") == steps


def test_of_masked_actions_only_allowed_ones_are_tried():
    class Strict(tiny_envs.MaskEnv):
        def action_masks(self):
            return self.allowed()

        def step(self, action):
            assert self.allowed()[action]
            return super().step(action)

    assert measure(Strict) > 0


@pytest.mark.parametrize("method", ["__init__", "reset", "step"])
def test_what_the_environment_raises_comes_as_it_is_and_nothing_stays_open(method):
    def fail(*args, **kwargs):
        raise KeyError("the joint is broken")

    broken = type("Broken", (Noted,), {method: fail})
    Noted.seen = ["closed"]
    with pytest.raises(KeyError, match="the joint is broken"):
        measure(broken)
    assert Noted.seen[-1] == "closed"


@pytest.mark.parametrize(
    ("step_s", "given", "expected"),
    [
        (FAST, {}, None),
        (FAST, {"steps": 10**9, "n_envs": 64}, 1),
        (SLOW, {}, 1),
        (SLOW, {"steps": 400}, None),
        (SLOW, {"steps": 400, "start_s": 0.0}, 1),
        (SLOW, {"cores": 1}, None),
        (SLOW, {"cores": 0}, None),
        (SLOW, {"cores": 4}, 3),
        (SLOW, {"cores": 64}, 7),
        (SLOW, {"inline": False}, 2),
        (SLOW, {"envs_per_actor": 1}, 8),
        (SLOW, {"envs_per_actor": 3}, 3),
        (FAST, {"envs_per_actor": 1}, None),
        (SLOW, {"n_envs": 2, "steps": 20_000}, 1),
        # A call to another node costs more than a cheap environment's step, and less than a dear one's.
        (FAST, {"cores": 1, "elsewhere": 16}, None),
        (SLOW, {"cores": 1, "elsewhere": 16}, 7),
        (200e-6, {"cores": 4, "elsewhere": 16}, 3),
    ],
)
def test_the_choice(step_s, given, expected):
    assert actors(choose(step_s, prospect(**given))) == expected


def test_cheap_environments_do_not_get_every_processor():
    few = choose(FAST, prospect(n_envs=64, cores=64, steps=10**9))
    assert 1 < actors(few) < 32
    assert few.grouping.inline
    assert sum(map(len, (few.grouping.inline, *few.grouping.actors))) == 64


def test_one_line_says_what_was_measured_and_chosen():
    assert choose(SLOW, prospect()).reason == (
        "an environment's step takes 10 ms; 8 of them take 80 ms in this process and about 40.1 ms with 1 actor and 4 "
        "environments beside them, 5.5 s to start: for 1,000,000 env steps actors are faster"
    )
    assert choose(FAST, prospect(envs_per_actor=1)).reason == (
        "an environment's step takes 10 us; 8 of them take 112 us in this process and about 536 us with 8 actors, 10 s to "
        "start: for 1,000,000 env steps this process is faster"
    )


def test_actors_that_outnumber_the_processors_take_turns():
    crowded = batch_seconds(SLOW, group(8, 1, 2, inline=False), Cores(2))
    assert crowded == pytest.approx(4 * SLOW, rel=0.05)
    assert batch_seconds(SLOW, group(8, 1, 8, inline=False), Cores(8)) == pytest.approx(SLOW, rel=0.05)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "TinyGoal-v0", "TinyImage-v0"])
def test_environments_of_every_kind_can_be_measured(env_id):
    assert 0 < measure(lambda: gym.make(env_id)) < 0.1
