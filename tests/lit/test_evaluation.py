"""Evaluations play what SB3's play, draw nothing from the training's random streams, and can be repeated."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray.lit.evaluation import Evaluation, evaluate, evaluation_seed


def ppo(env="CartPole-v1", **kwargs):
    return PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu", **kwargs)


def streams():
    state = np.random.get_state()
    return random.getstate(), state[1].tolist(), state[2], torch.get_rng_state().tolist()


def masked_env(n_envs=1):
    masks = {"action_mask_fn": lambda env: env.unwrapped.allowed()}
    return make_vec_env("TinyMask-v0", n_envs, wrapper_class=ActionMasker, wrapper_kwargs=masks)


class TestEvaluate:
    @pytest.mark.parametrize("deterministic", [True, False])
    @pytest.mark.parametrize("n_envs", [1, 3])
    def test_it_plays_what_sb3_plays(self, deterministic, n_envs):
        model = ppo()
        env = make_vec_env("CartPole-v1", n_envs)
        ours = evaluate(model, env, 5, deterministic=deterministic, seed=7)
        env.seed(7)
        torch.manual_seed(7)
        returns, lengths = evaluate_policy(model, env, 5, deterministic, return_episode_rewards=True)
        assert ours == Evaluation(tuple(returns), tuple(lengths))

    def test_actions_that_dqn_explores_with_are_its_own(self):
        """DQN draws them from its action space, which the training draws from, too."""
        model, env = DQN("MlpPolicy", "CartPole-v1", seed=0, device="cpu"), make_vec_env("CartPole-v1")
        model.exploration_rate = 1.0
        other = DQN("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
        first = evaluate(model, env, 3, deterministic=False, seed=1)
        assert evaluate(model, env, 3, deterministic=False, seed=1) == first
        assert evaluate(model, env, 3, deterministic=False, seed=2) != first
        assert [model.action_space.sample() for _ in range(20)] == [other.action_space.sample() for _ in range(20)]

    def test_the_same_seed_gives_the_same_result_and_another_one_another(self):
        model, env = ppo(), make_vec_env("CartPole-v1", 2)
        first = evaluate(model, env, 6, deterministic=False, seed=1)
        assert evaluate(model, env, 6, deterministic=False, seed=1) == first
        assert evaluate(model, env, 6, deterministic=False, seed=2) != first
        assert evaluate(model, make_vec_env("CartPole-v1", 2), 6, deterministic=False, seed=1) == first

    @pytest.mark.parametrize("seed", [None, 5])
    def test_the_global_generators_stay_where_they_are(self, seed):
        model, env = ppo(), make_vec_env("CartPole-v1")
        before = streams()
        evaluate(model, env, 3, deterministic=False, seed=seed)
        assert streams() == before

    def test_statistics(self):
        # Each episode of TinyCount-v0 has the rewards 1 to 5, and succeeds from its third step on.
        result = evaluate(ppo("TinyCount-v0"), make_vec_env("TinyCount-v0", 2), 3)
        assert (result.mean_reward, result.std_reward, result.mean_ep_length, result.success_rate) == (15.0, 0.0, 5.0, 1.0)
        assert result.successes == (True, True, True)
        failing = evaluate(ppo("TinyCount-v0"), make_vec_env("TinyCount-v0", env_kwargs={"success_at": 9}), 2)
        assert failing.success_rate == 0.0
        assert evaluate(ppo(), make_vec_env("CartPole-v1"), 1).success_rate is None

    def test_masks_are_asked_for_unless_told_otherwise(self):
        model = MaskablePPO("MlpPolicy", masked_env(), seed=0, device="cpu")
        # Only allowed actions are worth 1.
        assert evaluate(model, masked_env(2), 4, deterministic=False, seed=0).returns == (8.0,) * 4
        unmasked = evaluate(model, masked_env(2), 4, deterministic=False, seed=0, use_masking=False)
        assert unmasked.mean_reward < 8.0
        assert evaluate(model, make_vec_env("TinyMask-v0"), 2, seed=0).mean_reward < 8.0

    def test_a_recurrent_policy_keeps_its_state(self):
        model = RecurrentPPO("MlpLstmPolicy", "CartPole-v1", seed=0, device="cpu")
        env = make_vec_env("CartPole-v1")
        env.seed(3)
        expected = evaluate_policy(model, env, 3, return_episode_rewards=True)[0]
        assert list(evaluate(model, env, 3, seed=3).returns) == expected

    def test_seeds_of_evaluations_are_a_stream_of_their_own(self):
        seeds = {evaluation_seed(seed, step) for seed in range(5) for step in range(0, 5000, 1000)}
        assert len(seeds) == 25
        assert evaluation_seed(3, 1000) == evaluation_seed(3, 1000)
        assert not seeds & set(range(100))
