"""Training through RayVecEnv gives the same weights as through DummyVecEnv, bit for bit."""

from __future__ import annotations

import pytest
import ray
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv
from vec.catalogue import Masked

from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

pytestmark = pytest.mark.usefixtures("ray_instance")


def weights(algorithm, env_id, vec_env_cls, vec_env_kwargs, n_envs=4, **arguments):
    """Trains for a moment; returns all that was learned, and the step count."""
    venv = make_vec_env(env_id, n_envs, seed=3, vec_env_cls=vec_env_cls, vec_env_kwargs=vec_env_kwargs)
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


def test_eight_environments_with_an_actor_each_train_on_two_cpus():
    """Actors take fractions of what is free: two of Ray's four CPUs are held by somebody else."""
    while ray.available_resources().get("CPU", 0.0) < 4:
        ray.get(ray.remote(num_cpus=0)(lambda: None).remote())
    holder = ray.remote(num_cpus=2)(type("Holder", (), {"ready": lambda self: None})).remote()
    ray.get(holder.ready.remote())
    try:
        arguments = {"n_envs": 8, "n_steps": 16, "batch_size": 32, "n_epochs": 1}
        learned, _ = weights(PPO, "CartPole-v1", RayVecEnv, {"envs_per_actor": 1}, **arguments)
    finally:
        ray.kill(holder)
    expected, _ = weights(PPO, "CartPole-v1", DummyVecEnv, {}, **arguments)
    assert all(torch.equal(learned[key], expected[key]) for key in expected)
