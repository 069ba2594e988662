"""Algorithms of users: what `--algo own_algorithms:<Class>` may lead to."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm


class OwnPPO(PPO):
    """PPO under another name."""


class LoudPPO(PPO):
    """PPO with a `learn` that does something of its own."""

    learned = 0

    def learn(self, total_timesteps, callback=None, log_interval=1, tb_log_name="LoudPPO", **options):
        self.learned += 1
        return super().learn(total_timesteps, callback, log_interval, tb_log_name, **options)


class LinearPolicy:
    """The action with the highest score, or the scores as the action; no torch in it."""

    def __init__(self, observation_space, action_space):
        self.is_discrete = hasattr(action_space, "n")
        size = int(action_space.n) if self.is_discrete else int(np.prod(action_space.shape))
        self.weights = np.zeros((int(np.prod(observation_space.shape)), size))

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        scores = np.asarray(observation).reshape(-1, len(self.weights)) @ self.weights
        return (scores.argmax(axis=1) if self.is_discrete else np.tanh(scores)), state


class HillClimbing(BaseAlgorithm):
    """Tries weights near the best ones for a rollout and keeps those that earn more; its own loop, its own generator.

    As in SBX, the policy and the generator are saved with the attributes, and `load` seeds the generator anew.
    """

    policy_aliases = {"LinearPolicy": LinearPolicy}  # noqa: RUF012 (SB3's own form)

    def __init__(
        self,
        policy,
        env,
        n_steps=20,
        noise=0.5,
        seed=None,
        verbose=0,
        device="auto",
        tensorboard_log=None,
        _init_setup_model=True,
    ):
        super().__init__(policy, env, 0.0, support_multi_env=True, seed=seed, verbose=verbose, device=device)
        self.n_steps = n_steps
        self.noise = noise
        self.best = -np.inf
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self):
        self.set_random_seed(self.seed)
        self.generator = np.random.default_rng(self.seed)
        if getattr(self, "policy", None) is None:
            self.policy = self.policy_class(self.observation_space, self.action_space)

    def learn(
        self, total_timesteps, callback=None, log_interval=1, tb_log_name="run", reset_num_timesteps=True, progress_bar=False
    ):
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps and self._climb(callback):
            self.logger.record("train/loss", -self.best)
            self.logger.dump(self.num_timesteps)
        callback.on_training_end()
        return self

    def _climb(self, callback):
        callback.on_rollout_start()
        before = self.policy.weights
        step = self.generator.normal(size=before.shape) + 0.1 * np.random.normal(size=before.shape)
        self.policy.weights = before + self.noise * step
        self.tried = step.sum()  # An attribute that only training gives it.
        earned = 0.0
        for _ in range(self.n_steps):
            self._last_obs, rewards, _, infos = self.env.step(self.policy.predict(self._last_obs)[0])
            self.num_timesteps += self.env.num_envs
            earned += rewards.sum()
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos)
        if earned < self.best:
            self.policy.weights = before
        self.best = max(self.best, earned)
        callback.on_rollout_end()
        return True

    def _excluded_save_params(self):
        return [name for name in super()._excluded_save_params() if name != "policy"]

    def _get_torch_save_params(self):
        return [], []


class RandomSearch:
    """SB3's interface without its base class; a loop that knows of no rollouts."""

    def __init__(self, policy, env, seed=None, verbose=0, device="auto", scale=1.0):
        self.env, self.device, self.scale = env, "cpu", scale
        self.policy = LinearPolicy(env.observation_space, env.action_space)
        self.generator = np.random.default_rng(seed)
        self.num_timesteps = 0

    def learn(self, total_timesteps, callback=None, log_interval=1, reset_num_timesteps=True):
        total_timesteps += 0 if reset_num_timesteps else self.num_timesteps
        callback.init_callback(self)
        observations = self.env.reset()
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps:
            self.policy.weights = self.scale * self.generator.normal(size=self.policy.weights.shape)
            observations, _, _, infos = self.env.step(self.policy.predict(observations)[0])
            self.num_timesteps += self.env.num_envs
            callback.update_locals({"infos": infos})
            if not callback.on_step():
                break
        callback.on_training_end()
        return self

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.policy.predict(observation, state, episode_start, deterministic)

    def save(self, path):
        kept = {name: getattr(self, name) for name in ("policy", "generator", "num_timesteps", "scale")}
        Path(path).write_bytes(pickle.dumps(kept))

    @classmethod
    def load(cls, path, env=None, device="auto", **options):
        made = cls(None, env)
        vars(made).update(pickle.loads(Path(path).read_bytes()))
        return made

    def set_logger(self, logger):
        self.logger = logger

    def get_env(self):
        return self.env

    def get_vec_normalize_env(self):
        return None
