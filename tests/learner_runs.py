"""Runs of several learners, which tests start in their own process."""

from __future__ import annotations

import os

from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray import ExperimentManager

NET = {"net_arch": [8]}
SMALL = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "policy_kwargs": NET, "n_envs": 4}


def manager(folder, algo="ppo", env_id="TinyCount-v0", hyperparams=SMALL, **settings):
    given = {"n_timesteps": 512, "eval_freq": 200, "n_eval_episodes": 2, "seed": 3, "verbose": 0, "devices": 2}
    given |= {"device": "cpu", "vec_env_type": "dummy", "gym_packages": ("tiny_envs", "slow_envs")}
    return ExperimentManager(None, algo, env_id, str(folder), hyperparams=dict(hyperparams), **{**given, **settings})


def train(made):
    model = made.setup_experiment()
    made.learn(model)
    made.save_trained_model(model)
    return model


class Do(BaseCallback):
    """Does something at an env step."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action, self.done = step, action, False

    def _on_step(self):
        if self.num_timesteps >= self.step and not self.done:
            self.done = True
            return self.action(self.model) is not False
        return True

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class SignalInUpdate(BaseCallback):
    """Sends this process a signal before the first update, which has to be a long one."""

    def __init__(self, signum):
        super().__init__()
        self.signum = signum

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        os.kill(os.getpid(), self.signum)
