"""Batches that divide the rollout."""

import warnings

import pytest
from stable_baselines3 import PPO

from lit_sb3_ray.tuning.space.batch import fit_batch, nearest_divisor, rollout_of


@pytest.mark.parametrize(
    ("rollout", "wanted", "batch"),
    [
        (128, 64, 64),
        (128, 1024, 128),
        (192, 128, 96),
        (6, 4, 3),
        (160, 64, 80),
        (127, 64, 127),
        (127, 4, 127),
        (1, 4, 1),
        (9, 1, 3),
    ],
)
def test_the_nearest_divisor_and_never_one(rollout, wanted, batch):
    assert nearest_divisor(rollout, wanted) == batch


@pytest.mark.parametrize("n_steps", [5, 32, 97])
def test_sb3_has_nothing_to_warn_of(n_steps):
    batch = fit_batch("ppo", {"n_steps": n_steps, "batch_size": 64}, {}, None, None) or 64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PPO("MlpPolicy", "CartPole-v1", n_steps=n_steps, batch_size=batch, device="cpu")


def test_only_batches_of_rollouts_are_fitted():
    assert fit_batch("a2c", {"n_steps": 5}, {}, None, None) is None
    assert fit_batch("sac", {"batch_size": 7, "n_steps": 3}, {}, None, None) is None
    assert fit_batch("ppo", {"gamma": 0.9}, {"n_steps": 8, "batch_size": 64}, None, None) is None
    assert fit_batch("ppo", {"batch_size": 64}, {"n_steps": 8}, None, None) == 8
    assert fit_batch("ppo", {"n_steps": 8}, {"batch_size": 64}, {"batch_size": 64}, None) is None
    assert fit_batch("ppo", {"n_steps": "many", "batch_size": 64}, {}, None, None) is None
    assert fit_batch("ppo", {"n_steps": 8, "batch_size": "many"}, {}, None, None) is None


def test_a_rollout_is_of_all_envs():
    assert rollout_of("ppo", {}, None) == 2048
    assert rollout_of("ppo_lstm", {"n_envs": "8"}, None) == 128 * 8
    assert rollout_of("trpo", {"n_steps": 512, "n_envs": 2}, 4) == 2048
    assert rollout_of("dqn", {"n_steps": 512}, 4) is None
