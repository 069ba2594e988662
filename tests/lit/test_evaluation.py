"""Evaluations play what SB3's play, draw nothing from the training's random streams, and can be repeated."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.evaluation import Evaluation, evaluate, evaluation_seed


def ppo(env="CartPole-v1", **kwargs):
    return PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu", **kwargs)


def sac():
    small = {"batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
    return SAC("MlpPolicy", "TinyCount-v0", learning_starts=8, seed=0, device="cpu", **small)


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


class TestTrainer:
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
