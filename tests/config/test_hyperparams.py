"""Entries are chosen, merged and resolved; every mistake is one line that names key, file and the nearest right name."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
import yaml
from stable_baselines3 import PPO, HerReplayBuffer
from stable_baselines3.common.callbacks import CheckpointCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import VecMonitor

from lit_sb3_ray.config.files import ConfigFile
from lit_sb3_ray.config.hyperparams import merge, origins, resolve, select_entry
from lit_sb3_ray.config.noise import ActionNoiseSpec
from lit_sb3_ray.config.schedules import LinearSchedule
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.callbacks import SaveVecNormalizeCallback

WHERE = "own.yml, entry 'CartPole-v1'"
BASE = {"policy": "MlpPolicy", "n_timesteps": 1e5}


class OpenPPO(PPO):
    """Passes whatever it gets on to its base class."""

    def __init__(self, *args, extra: int = 0, **kwargs):
        super().__init__(*args, **kwargs)


def entry(**values):
    return {**BASE, **values}


def test_selects_id_then_atari_then_default():
    file = ConfigFile("own.yml", {"A-v0": {"a": [1]}, "atari": {"b": 1}, "default": {"c": 1}})
    assert select_entry(file, "A-v0", atari=True) == ({"a": [1]}, "A-v0")
    assert select_entry(file, "some_module:A-v0", atari=False)[1] == "A-v0"
    assert select_entry(file, "B-v0", atari=True)[1] == "atari"
    assert select_entry(file, "B-v0", atari=False)[1] == "default"
    del file.entries["atari"]
    assert select_entry(file, "B-v0", atari=True)[1] == "default"
    select_entry(file, "A-v0", atari=False)[0]["a"].append(2)
    assert file.entries["A-v0"] == {"a": [1]}


def test_no_entry_names_the_nearest():
    file = ConfigFile("own.yml", {"CartPole-v1": {}})
    with pytest.raises(ConfigError, match=r"'CartPol-v1' \(own.yml, which has no 'default'\): did you mean 'CartPole-v1'"):
        select_entry(file, "CartPol-v1", atari=False)


def test_precedence_is_file_then_trial_then_command_line():
    file = {"a": 1, "b": {"x": 1}, "c": 1}
    merged = merge(file, {"b": {"y": 2}, "c": 2}, {"c": 3})
    assert merged == {"a": 1, "b": {"y": 2}, "c": 3}
    merged["b"]["y"] = 0
    assert file["b"] == {"x": 1}
    assert origins({"b": 1, "c": 2}, {"c": 3}) == {"b": "trial", "c": "--hyperparams"}


def test_resolves_everything_an_entry_can_hold():
    raw = entry(
        n_envs=8,
        learning_rate="lin_1e-3",
        clip_range=0.2,
        n_steps="128",
        gamma=0.98,
        normalize="dict(norm_obs=True, norm_reward=False)",
        frame_stack=4,
        policy_kwargs="dict(net_arch=[64, 64], activation_fn=nn.ReLU)",
        env_wrapper=[
            "gymnasium.wrappers.FlattenObservation",
            {"gymnasium.wrappers.time_limit.TimeLimit": {"max_episode_steps": 5}},
        ],
        vec_env_wrapper="stable_baselines3.common.vec_env.VecMonitor",
        callback=[{"stable_baselines3.common.callbacks.StopTrainingOnMaxEpisodes": {"max_episodes": 3}}],
        monitor_kwargs="dict(info_keywords=('is_success',))",
        env_kwargs={"render_mode": "rgb_array"},
    )
    before = copy.deepcopy(raw)
    resolved = resolve(raw, "ppo", WHERE)
    assert raw == before
    assert resolved.algo_class is PPO
    assert (resolved.policy, resolved.n_timesteps, resolved.n_envs, resolved.frame_stack) == ("MlpPolicy", 100_000, 8, 4)
    assert type(resolved.n_timesteps) is int
    assert resolved.model_kwargs == {
        "learning_rate": LinearSchedule(1e-3),
        "clip_range": 0.2,
        "n_steps": 128,
        "gamma": 0.98,
        "policy_kwargs": {"net_arch": [64, 64], "activation_fn": torch.nn.ReLU},
    }
    assert resolved.normalize == {"norm_obs": True, "norm_reward": False, "gamma": 0.98}
    assert resolved.env_wrappers == (
        (gym.wrappers.FlattenObservation, {}),
        (gym.wrappers.TimeLimit, {"max_episode_steps": 5}),
    )
    assert resolved.vec_env_wrappers == ((VecMonitor, {}),)
    assert resolved.callbacks == ((StopTrainingOnMaxEpisodes, {"max_episodes": 3}),)
    assert resolved.monitor_kwargs == {"info_keywords": ("is_success",)}
    assert resolved.env_kwargs == {"render_mode": "rgb_array"}
    assert list(resolved.saved) == sorted(raw)
    assert resolved.saved == before
    assert yaml.safe_load(yaml.safe_dump(resolved.saved)) == resolved.saved


def test_python_values_are_taken_and_saved_plainly():
    built = CheckpointCallback(10, "x")
    raw = entry(
        policy="stable_baselines3.ppo.MlpPolicy",
        learning_rate=LinearSchedule(0.1),
        ent_coef=np.float64(0.5),
        policy_kwargs={"activation_fn": torch.nn.Tanh, "net_arch": (64, 64)},
        env_wrapper=gym.wrappers.FlattenObservation,
        callback=[built],
        normalize={"norm_obs": False},
    )
    resolved = resolve(raw, "ppo", WHERE)
    assert resolved.callbacks == (built,)
    assert isinstance(resolved.policy, type)
    assert resolved.normalize == {"norm_obs": False}
    assert raw["normalize"] == {"norm_obs": False}
    saved = resolved.saved
    assert yaml.safe_load(yaml.safe_dump(saved)) == saved
    assert saved["learning_rate"] == {"kind": "linear", "start": 0.1, "end": 0.0}
    assert saved["policy_kwargs"] == {"activation_fn": "torch.nn.modules.activation.Tanh", "net_arch": [64, 64]}
    again = resolve({**saved, "callback": None}, "ppo", WHERE)
    assert again.model_kwargs["policy_kwargs"]["activation_fn"] is torch.nn.Tanh
    assert again.model_kwargs["learning_rate"] == LinearSchedule(0.1)
    assert again.env_wrappers == resolved.env_wrappers


def test_off_policy_values():
    raw = entry(
        buffer_size="1e6",
        train_freq=[1, "episode"],
        gradient_steps=-1,
        ent_coef="auto",
        noise_type="normal",
        noise_std=0.1,
        replay_buffer_class="HerReplayBuffer",
        replay_buffer_kwargs="dict(goal_selection_strategy='future', n_sampled_goal=4)",
    )
    resolved = resolve(raw, "sac", WHERE)
    assert resolved.model_kwargs == {
        "buffer_size": 1_000_000,
        "train_freq": (1, "episode"),
        "gradient_steps": -1,
        "ent_coef": "auto",
        "replay_buffer_class": HerReplayBuffer,
        "replay_buffer_kwargs": {"goal_selection_strategy": "future", "n_sampled_goal": 4},
    }
    assert resolved.noise == ActionNoiseSpec("normal", 0.1)


def test_noise_builds_what_the_peer_builds():
    normal = ActionNoiseSpec("normal", 0.1).build(3)
    assert isinstance(normal, NormalActionNoise)
    assert repr(normal) == repr(NormalActionNoise(np.zeros(3), 0.1 * np.ones(3)))
    ou = ActionNoiseSpec("ornstein-uhlenbeck", 0.5).build(1)
    assert isinstance(ou, OrnsteinUhlenbeckActionNoise)
    assert repr(ou) == repr(OrnsteinUhlenbeckActionNoise(np.zeros(1), 0.5 * np.ones(1)))


@pytest.mark.parametrize("value", [True, "True", {}])
def test_normalize_takes_the_discount_factor_of_the_algorithm(value):
    assert resolve(entry(normalize=value, gamma=0.9), "a2c", WHERE).normalize == {"gamma": 0.9}


@pytest.mark.parametrize("value", [False, None, "false"])
def test_normalize_may_be_off(value):
    assert resolve(entry(normalize=value), "a2c", WHERE).normalize is None


def test_sampled_absence_of_noise_removes_the_files_noise():
    assert resolve(entry(noise_type=None, noise_std=0.1), "td3", WHERE).noise is None


def test_use_masking_is_for_masking_algorithms():
    assert resolve(entry(use_masking=False), "ppo_mask", WHERE).use_masking is False
    assert resolve(entry(), "ppo_mask", WHERE).use_masking is None
    with pytest.raises(ConfigError, match="ppo_mask"):
        resolve(entry(use_masking=False), "ppo", WHERE)


def test_the_recurrent_policy_is_taken_for_its_plain_name():
    assert resolve(entry(), "ppo_lstm", WHERE).policy == "MlpLstmPolicy"


def test_a_budget_from_the_command_line_replaces_a_missing_one():
    """Case G3: a file without n_timesteps but `-n 5000`."""
    assert resolve({"policy": "MlpPolicy"}, "ppo", WHERE, n_timesteps=5000).n_timesteps == 5000
    assert resolve(entry(n_timesteps=0), "ppo", WHERE, n_timesteps=5000).n_timesteps == 5000
    assert resolve(entry(), "ppo", WHERE, n_timesteps=0).n_timesteps == 100_000
    with pytest.raises(ConfigError, match="no n_timesteps"):
        resolve({"policy": "MlpPolicy"}, "ppo", WHERE, n_timesteps=0)


def test_a_class_that_passes_keywords_on_has_its_bases_parameters(monkeypatch):
    from lit_sb3_ray.config.algorithms import ALGOS

    monkeypatch.setitem(ALGOS, "open_ppo", OpenPPO)
    assert resolve(entry(extra=1, n_steps=8), "open_ppo", WHERE).model_kwargs == {"extra": 1, "n_steps": 8}
    with pytest.raises(ConfigError, match="did you mean 'n_steps'"):
        resolve(entry(n_step=8), "open_ppo", WHERE)


class PostponedPPO(PPO):
    """Has annotations that are strings, as in a module that postpones them."""

    def __init__(
        self,
        policy: str,
        env: Any,
        n_steps: int | None = 8,
        policy_kwargs: SomeDict = None,  # noqa: F821
        seed: int | None = None,
        verbose: int = 0,
        device: str = "auto",
    ):
        super().__init__(policy, env, n_steps=n_steps, policy_kwargs=policy_kwargs, seed=seed, verbose=verbose, device=device)


def test_postponed_annotations_are_understood_as_far_as_they_can_be(monkeypatch):
    from lit_sb3_ray.config.algorithms import ALGOS

    monkeypatch.setitem(ALGOS, "postponed", PostponedPPO)
    resolved = resolve(entry(n_steps="1e2", policy_kwargs="dict(activation_fn=nn.ReLU)"), "postponed", WHERE)
    assert resolved.model_kwargs == {"n_steps": 100, "policy_kwargs": {"activation_fn": torch.nn.ReLU}}
    with pytest.raises(ConfigError, match="expected a whole number or null"):
        resolve(entry(n_steps="x"), "postponed", WHERE)
    with pytest.raises(ConfigError, match="mapping"):
        resolve(entry(policy_kwargs="[1]"), "postponed", WHERE)


@pytest.mark.parametrize("save_freq", [0, -1])
def test_a_callback_that_would_save_never_is_refused(save_freq, tmp_path):
    with pytest.raises(ConfigError, match=f"save_freq of SaveVecNormalizeCallback must be at least 1, got {save_freq}"):
        SaveVecNormalizeCallback(save_freq, str(tmp_path))
