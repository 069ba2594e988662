"""The trainer's `validate`, `test` and `predict`: what they play, tell and leave alone."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.evaluation import evaluate


def ppo(env="CartPole-v1", **kwargs):
    return PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu", **kwargs)


def sac():
    small = {"batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
    return SAC("MlpPolicy", "TinyCount-v0", learning_starts=8, seed=0, device="cpu", **small)


def masked_env(n_envs=1):
    masks = {"action_mask_fn": lambda env: env.unwrapped.allowed()}
    return make_vec_env("TinyMask-v0", n_envs, wrapper_class=ActionMasker, wrapper_kwargs=masks)


class TestEvaluating:
    @pytest.mark.parametrize("stage", ["validate", "test"])
    def test_results(self, stage):
        trainer = RLTrainer(max_steps=16)
        model = trainer.fit(ppo("TinyCount-v0"))
        env = make_vec_env("TinyCount-v0", 2)
        (row,) = getattr(trainer, stage)(model, env=env, n_eval_episodes=3)
        values = {"mean_reward": 15.0, "std_reward": 0.0, "mean_episode_length": 5.0, "std_episode_length": 0.0}
        values |= {"n_eval_episodes": 3, "success_rate": 1.0}
        assert row == {f"{stage}/{name}": value for name, value in values.items()}
        (row,) = getattr(trainer, stage)(env=env, n_eval_episodes=2, return_episode_rewards=True)
        assert row[f"{stage}/episode_rewards"] == [15.0, 15.0]
        assert row[f"{stage}/episode_lengths"] == [5, 5]

    def test_they_are_sb3s(self):
        trainer, env = RLTrainer(max_steps=16), make_vec_env("CartPole-v1", 2)
        model = trainer.fit(ppo())
        (row,) = trainer.test(model, env=env, n_eval_episodes=6, seed=2)
        env.seed(2)
        assert (row["test/mean_reward"], row["test/std_reward"]) == evaluate_policy(model, env, 6)

    def test_a_threshold_that_is_not_passed_is_an_error(self):
        trainer, model = RLTrainer(max_steps=16), ppo("TinyCount-v0")
        trainer.validate(model, reward_threshold=14.9)
        with pytest.raises(AssertionError, match=r"mean return 15\.00 is not above 15\.00"):
            trainer.validate(model, reward_threshold=15)

    def test_without_a_model_nothing_can_be_played(self):
        with pytest.raises(ConfigError, match="no model was given and none was trained"):
            RLTrainer(max_steps=16).test(env=make_vec_env("CartPole-v1"))

    @pytest.mark.parametrize("normalize", [False, True])
    @pytest.mark.parametrize("make", [ppo, lambda env: DQN("MlpPolicy", env, learning_starts=8, seed=0, device="cpu")])
    def test_training_goes_on_with_new_episodes_after_its_own_envs_were_played_in(self, make, normalize):
        env = make_vec_env("CartPole-v1", 2, seed=0)
        env = VecNormalize(env) if normalize else env
        trainer, model = RLTrainer(max_steps=100), make(env)
        trainer.fit(model, until=50)
        count = env.obs_rms.count if normalize else 0
        trainer.validate(model, n_eval_episodes=2)
        # What was seen in play is not learnt from; the new episodes' first observations are.
        assert not normalize or (env.training and env.obs_rms.count == count + 2)
        assert model._last_episode_starts.all()
        inner = env.venv if normalize else env
        begun = env.get_original_obs() if normalize else model._last_obs
        np.testing.assert_allclose(inner.envs[0].unwrapped.state, begun[0], rtol=1e-6)
        trainer.fit(model)
        assert model.num_timesteps >= 100

    def test_new_episodes_begin_too_where_a_monitor_was_put_around_its_own_envs(self):
        env = DummyVecEnv([lambda: gym.make("CartPole-v1")] * 2)
        trainer, model = RLTrainer(max_steps=100), ppo(env)
        trainer.fit(model, until=32)
        trainer.test(n_eval_episodes=3)
        assert model._last_episode_starts.all()
        states = [inner.unwrapped.state for inner in env.envs]
        np.testing.assert_allclose(states, model._last_obs, rtol=1e-6)

    def test_statistics_of_the_training_are_taken_over(self):
        train = VecNormalize(make_vec_env("CartPole-v1", 2, seed=0))
        trainer = RLTrainer(max_steps=64)
        model = trainer.fit(ppo(train))
        env = VecNormalize(make_vec_env("CartPole-v1"), norm_reward=False)
        (row,) = trainer.validate(model, env=env, n_eval_episodes=3, seed=1)
        np.testing.assert_array_equal(env.obs_rms.mean, train.obs_rms.mean)
        assert env.training
        frozen = VecNormalize(make_vec_env("CartPole-v1"), training=False, norm_reward=False)
        frozen.obs_rms = train.obs_rms
        assert row["validate/mean_reward"] == evaluate(model, frozen, 3, seed=1).mean_reward
        with pytest.raises(ConfigError, match="trained on normalised observations"):
            trainer.validate(model, env=make_vec_env("CartPole-v1"))

    @pytest.mark.parametrize("make", [ppo, sac])
    def test_a_training_that_is_evaluated_in_between_learns_the_same(self, make):
        alone = RLTrainer(max_steps=64).fit(make())
        env = make_vec_env(alone.get_env().envs[0].spec.id, seed=0)
        model, trainer = make(), RLTrainer(max_steps=64)
        for until in (16, 32, 48, 64):
            trainer.fit(model, until=until)
            trainer.validate(model, env=env, n_eval_episodes=2, deterministic=False, seed=until)
        for mine, other in zip(model.policy.parameters(), alone.policy.parameters(), strict=True):
            assert torch.equal(mine, other)


class TestPredict:
    def test_it_is_one_call_of_the_policy(self):
        trainer, model = RLTrainer(max_steps=16), ppo()
        observation = np.array([0.1, 0.2, -0.1, 0.0], np.float32)
        assert trainer.predict(model, observation)[0] == model.predict(observation, deterministic=True)[0]
        actions, state = trainer.predict(model, env=make_vec_env("CartPole-v1", 3))
        assert (actions.shape, state) == ((3,), None)

    def test_hidden_states_go_round(self):
        model = RecurrentPPO("MlpLstmPolicy", "CartPole-v1", seed=0, device="cpu")
        trainer, observation = RLTrainer(max_steps=16), np.zeros((1, 4), np.float32)
        start = np.ones(1, bool)
        _, state = trainer.predict(model, observation, episode_start=start)
        _, after = trainer.predict(model, observation, state, np.zeros(1, bool))
        assert not np.array_equal(state[0], after[0])

    def test_masks_are_heeded(self):
        model = MaskablePPO("MlpPolicy", masked_env(), seed=0, device="cpu")
        for allowed in range(4):
            masks = np.eye(4, dtype=bool)[allowed]
            assert RLTrainer(max_steps=1).predict(model, np.zeros(4, np.float32), action_masks=masks)[0] == allowed

    def test_an_observation_or_an_env_is_needed(self):
        with pytest.raises(ConfigError, match="predict needs an observation, or an env"):
            RLTrainer(max_steps=16).predict(ppo())
