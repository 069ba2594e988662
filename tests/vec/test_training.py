"""Training through RayVecEnv gives the same weights as through DummyVecEnv, bit for bit."""

from __future__ import annotations

import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv
from vec.catalogue import Masked

from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

pytestmark = pytest.mark.usefixtures("ray_instance")


def weights(algorithm, env_id, vec_env_cls, vec_env_kwargs, **arguments):
    """Trains for a moment; returns all that was learned, and the step count."""
    venv = make_vec_env(env_id, 4, seed=3, vec_env_cls=vec_env_cls, vec_env_kwargs=vec_env_kwargs)
    try:
        model = algorithm("MlpPolicy", venv, seed=3, device="cpu", **arguments)
        model.learn(300)
    finally:
        venv.close()
    return model.policy.state_dict(), model.num_timesteps


@pytest.mark.parametrize(
    ("algorithm", "env_id", "arguments"),
    [
        (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 32, "n_epochs": 2}),
        (SAC, "Pendulum-v1", {"learning_starts": 50, "train_freq": 8, "batch_size": 16}),
        (MaskablePPO, Masked, {"n_steps": 16, "batch_size": 32, "n_epochs": 1}),
    ],
)
def test_weights_are_those_of_dummy(algorithm, env_id, arguments):
    expected, steps = weights(algorithm, env_id, DummyVecEnv, {}, **arguments)
    for kwargs in ({"envs_per_actor": 2}, {"envs_per_actor": "auto"}):
        learned, taken = weights(algorithm, env_id, RayVecEnv, kwargs, **arguments)
        assert taken == steps
        assert learned.keys() == expected.keys()
        assert all(torch.equal(learned[key], expected[key]) for key in expected)
