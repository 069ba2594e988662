"""Action masks reach the learner through shared memory, and are what the environments have returned."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import ray
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv
from vec.catalogue import Masked
from vec.test_conformance import assert_same

from lit_sb3_ray.vec.batch import mask_entries
from lit_sb3_ray.vec.masks import read_mask, write_mask
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

N_ENVS = 4
FORMS = {
    "array": lambda mask: mask,
    "bytes": lambda mask: mask.astype(np.int8),
    "numbers": lambda mask: mask.astype(np.float64),
    "list": lambda mask: mask.tolist(),
    "tuple": lambda mask: tuple(mask.tolist()),
    "ints": lambda mask: mask.astype(int).tolist(),
    "short": lambda mask: mask[:2],
}


@pytest.mark.parametrize("form", FORMS)
def test_memory_gives_back_what_it_can_hold_exactly_and_refuses_the_rest(form):
    mask = FORMS[form](np.array([True, False, True]))
    memory = np.full(3 * 8, 7, np.uint8)
    code = write_mask(mask, memory, 3)
    assert bool(code) == (form in ("array", "bytes", "numbers", "list"))
    if code:
        back = read_mask(code, memory, 3)
        assert type(back) is type(mask)
        assert_same(back, mask)
        memory[:] = 0
        assert_same(back, mask)


@pytest.mark.parametrize(
    ("space", "entries"),
    [
        (spaces.Discrete(5), 5),
        (spaces.MultiDiscrete([3, 2]), 5),
        (spaces.MultiBinary(4), 8),
        (spaces.Box(-1, 1, (2,)), 0),
    ],
)
def test_masks_have_as_many_entries_as_sb3_contrib_wants(space, entries):
    assert mask_entries(space) == entries


class Shaped(gym.Env):
    """Its masks have the form asked for; it counts how often they are made. Ends every seventh step."""

    def __init__(self, form="array"):
        self.observation_space = spaces.Box(0.0, 100.0, (1,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.form, self.calls, self.closed_action = form, 0, None

    def action_masks(self):
        self.calls += 1
        mask = self.allowed.copy()
        if self.closed_action is not None:
            mask[self.closed_action] = False
        return FORMS[self.form](mask)

    def _draw(self):
        self.allowed = self.np_random.random(3) < 0.5
        return np.array([self.count], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._draw(), {}

    def step(self, action):
        self.count += 1
        return self._draw(), 1.0, self.count == 7, False, {}


def posts(venv):
    """How often each actor was asked for something."""
    return venv._crew.fleet.batch.words[:, 0, 0].copy()


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("arguments", [{"envs_per_actor": 1}, {"envs_per_actor": 2, "transport": "calls"}, {}])
@pytest.mark.parametrize("form", ["array", "list", "tuple"])
def test_masks_are_those_of_dummy_and_their_environments_are_asked_no_oftener(form, arguments):
    builders = [partial(Shaped, form)] * N_ENVS
    ours, theirs = RayVecEnv(builders, **arguments), DummyVecEnv(builders)
    try:
        for venv in (ours, theirs):
            venv.seed(0)
            venv.reset()
        for number in range(60):
            for indices in (None,) if number % 3 else (None, [2, 0], 1):
                assert_same(
                    ours.env_method("action_masks", indices=indices), theirs.env_method("action_masks", indices=indices)
                )
            if number == 30:
                for venv in (ours, theirs):
                    venv.step(np.zeros(N_ENVS, np.int64))
                    venv.set_attr("closed_action", 1, indices=[1])
            if number == 40:
                for venv in (ours, theirs):
                    venv.reset()
            for got, expected in zip(
                ours.step(np.zeros(N_ENVS, np.int64)), theirs.step(np.zeros(N_ENVS, np.int64)), strict=True
            ):
                assert_same(got, expected)
        if form != "tuple":
            # At most one mask is made in vain after each change of habit.
            assert all(
                0 <= one - other <= 3 for one, other in zip(ours.get_attr("calls"), theirs.get_attr("calls"), strict=True)
            )
    finally:
        ours.close()


@pytest.mark.usefixtures("ray_instance")
def test_maskable_ppo_asks_each_actor_once_a_step_and_calls_ray_never(monkeypatch):
    venv = RayVecEnv([Masked] * N_ENVS, envs_per_actor=2)
    try:
        model = MaskablePPO("MlpPolicy", venv, n_steps=64, batch_size=64, n_epochs=1, device="cpu", seed=0)
        for name in ("get", "wait", "put"):
            monkeypatch.setattr(ray, name, None)
        monkeypatch.setattr(ray.actor.ActorMethod, "_remote", None)
        before = posts(venv)
        model.learn(64 * N_ENVS * 3)
        asked = posts(venv) - before
        # The steps, the first reset, the first masks, and in each rollout the question whether there are masks.
        assert all(64 * 3 < each <= 64 * 3 + 5 for each in asked)
    finally:
        monkeypatch.undo()
        venv.close()


class FailingMask(Masked):
    def action_masks(self):
        if getattr(self, "broken", False):
            raise ValueError("no mask today")
        return super().action_masks()


@pytest.mark.usefixtures("ray_instance")
def test_an_error_of_a_mask_reaches_whoever_asks_for_it():
    venv = RayVecEnv([FailingMask] * N_ENVS, envs_per_actor=2)
    try:
        venv.reset()
        venv.env_method("action_masks")
        venv.set_attr("broken", True, indices=[3])
        with pytest.raises(ValueError, match="no mask today") as caught:
            venv.env_method("action_masks")
        assert "environment 3" in "".join(caught.value.__notes__)
        assert len(venv.env_method("action_masks", indices=[0, 1])) == 2
    finally:
        venv.close()
