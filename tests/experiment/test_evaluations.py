"""Evaluations in training come at their env steps, keep their history and the best model, and leave the training alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.experiment.evaluations import (
    EvaluationCallback,
    EvaluationPlan,
    append_evaluation,
    cut_evaluations,
    read_evaluations,
    write_evaluations,
)
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.lit.evaluation import Evaluation, evaluation_seed


def small():
    # SB3 adds to the policy_kwargs it is given.
    return {"seed": 0, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}


def ppo(env="CartPole-v1"):
    return PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, **small())


def sac():
    return SAC("MlpPolicy", "TinyCount-v0", learning_starts=8, batch_size=8, **small())


def evaluations(tmp_path, env, freq=20, n_episodes=2, **options):
    plan = {"seed": 3, "deterministic": options.pop("deterministic", True)}
    run = RunFolder(tmp_path, "CartPole-v1")
    return EvaluationCallback(env, EvaluationPlan(freq, n_episodes, **plan), run, verbose=0, **options)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("make", "env_id"), [(ppo, "CartPole-v1"), (sac, "TinyCount-v0")])
def test_training_learns_the_same_with_and_without_them(make, env_id, deterministic, tmp_path):
    alone = RLTrainer(max_steps=64).fit(make())
    callback = evaluations(tmp_path, make_vec_env(env_id, 2, seed=5), deterministic=deterministic)
    watched = RLTrainer(max_steps=64, rl_callback=callback).fit(make())
    assert len(callback.history["timesteps"]) == 3
    assert torch.equal(weights(watched), weights(alone))


def test_the_history_is_in_sb3s_form_and_comes_at_env_steps(tmp_path):
    # Four envs step together, so that an evaluation comes at the first multiple of four from its step on.
    model = PPO("MlpPolicy", make_vec_env("TinyCount-v0", 4), n_steps=16, batch_size=64, **small())
    RLTrainer(max_steps=64, rl_callback=evaluations(tmp_path, make_vec_env("TinyCount-v0"), freq=30, n_episodes=3)).fit(model)
    with np.load(tmp_path / "evaluations.npz") as file:
        assert file["timesteps"].tolist() == [32, 60]
        assert file["results"].tolist() == [[15.0] * 3] * 2
        assert file["ep_lengths"].tolist() == [[5] * 3] * 2
        assert file["successes"].tolist() == [[True] * 3] * 2
    assert not list(tmp_path.glob(".*"))


def test_an_evaluation_can_be_repeated_from_its_seed(tmp_path):
    env = make_vec_env("CartPole-v1", 2)
    callback = evaluations(tmp_path, env, freq=16, n_episodes=4, deterministic=False)
    model = RLTrainer(max_steps=16, rl_callback=callback).fit(ppo())
    # The evaluation came before the update, and so did the best model.
    best = PPO.load(tmp_path / "best_model.zip", device="cpu")
    seed = evaluation_seed(3, 16)
    env.seed(seed)
    torch.manual_seed(seed)
    returns, _ = evaluate_policy(best, env, 4, deterministic=False, return_episode_rewards=True)
    assert callback.history["results"] == [returns]
    assert not torch.equal(weights(best), weights(model))


def test_the_best_model_stays_and_has_the_statistics_of_its_moment(tmp_path):
    class Worse(BaseCallback):
        """Makes every evaluation after the first one worse."""

        def _on_step(self):
            (inner,) = self.parent.eval_env.unwrapped.envs if self.parent else [None]
            inner.unwrapped.length = 2
            return True

    train = VecNormalize(make_vec_env("TinyCount-v0", seed=0))
    env = VecNormalize(make_vec_env("TinyCount-v0"), training=False, norm_reward=False)
    callback = evaluations(tmp_path, env, freq=16, callback_after_eval=Worse())
    RLTrainer(max_steps=48, rl_callback=callback).fit(ppo(train))
    assert [row[0] for row in callback.history["results"]] == [15.0, 3.0, 3.0]
    assert (callback.best_mean_reward, callback.last_mean_reward) == (15.0, 3.0)
    kept = VecNormalize.load(str(tmp_path / "best_model_vecnormalize.pkl"), make_vec_env("TinyCount-v0"))
    # One observation at the reset and one a step.
    assert round(kept.obs_rms.count) == 17
    assert round(train.obs_rms.count) == 49
    np.testing.assert_array_equal(env.obs_rms.mean, train.obs_rms.mean)
    assert PPO.load(tmp_path / "best_model.zip", device="cpu").num_timesteps == 16


def test_a_callback_on_a_new_best_may_end_the_training(tmp_path):
    stop = StopTrainingOnRewardThreshold(10.0)
    trainer = RLTrainer(
        max_steps=200, rl_callback=evaluations(tmp_path, make_vec_env("TinyCount-v0"), callback_on_new_best=stop)
    )
    trainer.fit(ppo("TinyCount-v0"))
    assert trainer.global_step == 20


def test_masks_are_used(tmp_path):
    masks = {"wrapper_class": ActionMasker, "wrapper_kwargs": {"action_mask_fn": lambda env: env.unwrapped.allowed()}}
    model = MaskablePPO("MlpPolicy", make_vec_env("TinyMask-v0", **masks), n_steps=16, batch_size=16, **small())
    callback = evaluations(tmp_path, make_vec_env("TinyMask-v0", **masks), freq=16, deterministic=False)
    RLTrainer(max_steps=16, rl_callback=callback).fit(model)
    assert callback.history["results"] == [[8.0, 8.0]]


class TestHistory:
    def test_later_evaluations_are_cut(self, tmp_path):
        history = read_evaluations(tmp_path / "none.npz")
        for step in (10, 20, 30):
            append_evaluation(history, step, Evaluation((float(step),), (step,), (True,)))
        path = tmp_path / "evaluations.npz"
        write_evaluations(path, history)
        cut_evaluations(path, 20)
        kept = {"timesteps": [10, 20], "results": [[10.0], [20.0]], "ep_lengths": [[10], [20]], "successes": [[True], [True]]}
        assert read_evaluations(path) == kept

    def test_successes_told_for_some_episodes_only_are_left_out(self, tmp_path):
        history = read_evaluations(tmp_path / "none.npz")
        append_evaluation(history, 10, Evaluation((1.0, 2.0), (1, 2), (True,)))
        write_evaluations(tmp_path / "evaluations.npz", history)
        assert "successes" not in read_evaluations(tmp_path / "evaluations.npz")
