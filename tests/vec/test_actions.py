"""What cannot be actions of the environments is refused before any of them steps."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from vec.fault_envs import Steady

from lit_sb3_ray.vec.actions import check_actions
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

CHOICE, NUMBERS = spaces.Discrete(3), spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    ("actions", "space", "told"),
    [
        (np.zeros(3, np.int64), CHOICE, "step takes 4 actions, one for each environment, and got 3"),
        (np.zeros(5, np.int64), CHOICE, "and got 5"),
        ([0, 1], CHOICE, "and got 2"),
        (1, CHOICE, "step takes 4 actions, one for each environment, not 1"),
        (None, CHOICE, "not None"),
        (np.zeros((4, 1), np.int64), CHOICE, r"has the shape \(\), not \(1,\)"),
        (np.zeros(4), CHOICE, r"actions of Discrete\(3\) are whole numbers, not float64"),
        (np.zeros(4, object), CHOICE, "whole numbers, not object"),
        (np.zeros((4, 3), np.float32), NUMBERS, r"has the shape \(2,\), not \(3,\)"),
        (np.full((4, 2), "a"), NUMBERS, "are numbers, not <U1"),
        (np.zeros((4, 2), complex), NUMBERS, "are numbers, not complex128"),
    ],
)
def test_what_is_no_action_for_each_environment_is_named(actions, space, told):
    with pytest.raises(ValueError, match=told):
        check_actions(actions, 4, space)


@pytest.mark.parametrize(
    ("actions", "space"),
    [
        (np.zeros(4, np.uint8), CHOICE),
        ([0, 1, 2, 0], CHOICE),
        (np.zeros((4, 2), np.float64), NUMBERS),
        (np.zeros((4, 2), np.int64), NUMBERS),
        ([[0.5], [1.5], [2.5], [3.5]], NUMBERS),
        (np.zeros((4, 2), np.float32), spaces.MultiBinary(2)),
        ([{"a": 1}] * 4, spaces.Dict({"a": CHOICE})),
    ],
)
def test_what_environments_may_take_is_let_pass(actions, space):
    check_actions(actions, 4, space)


class Clipping(gym.Env):
    """Clips its action in place."""

    observation_space = action_space = NUMBERS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        np.clip(action, -0.5, 0.5, out=action)
        return action.copy(), 0.0, False, False, {}


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("arguments", [{"envs_per_actor": 2}, {"envs_per_actor": 2, "transport": "calls"}, {}])
def test_an_environment_may_change_its_action_and_nobody_else_s(arguments):
    venv = RayVecEnv([Clipping] * 4, **arguments)
    try:
        venv.reset()
        actions = np.ones((4, 2), np.float32)
        for given in (actions, list(actions)):
            assert venv.step(given)[0].tolist() == [[0.5, 0.5]] * 4
        if arguments:
            assert (actions == 1).all()
    finally:
        venv.close()


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("transport", ["shared", "calls"])
def test_after_a_refusal_the_environments_stand_where_they_stood(transport):
    venv = RayVecEnv([partial(Steady, index) for index in range(4)], envs_per_actor=2, transport=transport)
    try:
        venv.reset()
        venv.step(np.zeros(4, np.int64))
        for wrong in (np.zeros(3, np.int64), np.zeros(5, np.int64), np.zeros((4, 1), np.int64), np.zeros(4)):
            with pytest.raises(ValueError, match=r"step takes 4 actions|has the shape|whole numbers"):
                venv.step(wrong)
            with pytest.raises(RuntimeError, match="step_wait was called without step_async"):
                venv.step_wait()
        assert venv.step(np.zeros(4, np.int64))[0][:, 0].tolist() == [2, 2, 2, 2]
    finally:
        venv.close()
