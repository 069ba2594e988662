"""From what is drawn to hyperparameters, number by number."""

import pytest

from lit_sb3_ray.config.hyperparams import merge, resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.conversion import convert


def test_exponents_and_complements():
    params = {"one_minus_gamma": 0.01, "one_minus_gae_lambda": 0.1, "n_steps_pow": 6, "batch_size_pow": 5, "n_epochs": 5}
    assert convert("ppo", params, {}) == {"gamma": 0.99, "gae_lambda": 0.9, "n_steps": 64, "batch_size": 32, "n_epochs": 5}


def test_networks_by_name():
    params = {"net_arch": "small", "activation_fn": "tanh"}
    two = {"pi": [64, 64], "vf": [64, 64]}
    assert convert("a2c", params, {}) == {"policy_kwargs": {"net_arch": two, "activation_fn": "nn.Tanh"}}
    assert convert("sac", {"net_arch": "big"}, {}) == {"policy_kwargs": {"net_arch": [400, 300]}}


@pytest.mark.parametrize(
    ("entry", "overrides", "n_envs", "batch"),
    [
        ({}, None, None, 32),
        ({"n_envs": 4}, None, None, 128),
        ({"n_envs": "4"}, None, None, 128),
        ({"n_envs": 4}, {"n_envs": 2}, None, 64),
        ({"n_envs": 4}, None, 8, 256),
        ({"n_envs": 64}, None, None, 1024),
        ({"n_envs": 4}, {"n_steps": 8}, None, 32),
    ],
)
def test_a_batch_is_no_larger_than_the_rollout(entry, overrides, n_envs, batch):
    params = {"n_steps_pow": 5, "batch_size_pow": 10}
    assert convert("ppo", params, entry, overrides, n_envs)["batch_size"] == batch


def test_updates_follow_the_steps_between_them():
    assert convert("sac", {"train_freq": 6}, {}) == {"train_freq": 6, "gradient_steps": 6}
    assert convert("dqn", {"train_freq": 7, "subsample_steps": 3}, {}) == {"train_freq": 7, "gradient_steps": 2}


def test_quantiles_belong_to_the_policy():
    hyperparams = convert("qrdqn", {"n_quantiles": 25, "net_arch": "small"}, {"policy_kwargs": {"n_quantiles": 50, "a": 1}})
    assert hyperparams == {"policy_kwargs": {"n_quantiles": 25, "net_arch": [64, 64], "a": 1}}


def test_directions_of_random_search():
    assert convert("ars", {"n_delta_pow": 3, "top_frac_size": 0.3}, {}) == {"n_delta": 8, "n_top": 2}
    assert convert("ars", {"n_delta_pow": 2, "top_frac_size": 0.05}, {})["n_top"] == 1


def test_drawing_no_noise_takes_the_file_s_away():
    entry = {"policy": "MlpPolicy", "n_timesteps": 10, "noise_type": "normal", "noise_std": 0.1}
    for kind in ("normal", "ornstein-uhlenbeck", None):
        merged = merge(entry, convert("td3", {"noise_type": kind, "noise_std": 0.3}, entry))
        noise = resolve(merged, "td3", "test").noise
        assert noise is None if kind is None else (noise.kind, noise.std) == (kind, 0.3)


def test_what_cannot_be_read_is_not_merged_into():
    with pytest.raises(ConfigError, match="policy_kwargs"):
        convert("sac", {"net_arch": "small"}, {"policy_kwargs": "open('x')"})
