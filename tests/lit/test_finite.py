"""NaN ends a training within an iteration, in one line that says whether the environment or the training is at fault."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import ARS
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.cli.main import main
from lit_sb3_ray.errors import NonFiniteError
from lit_sb3_ray.lit.finite import CHECK_EVERY, check_finite

DIVERGED = "training has diverged; a lower learning_rate"


def model(name, env="TinyBroken-v0", **kwargs):
    off_policy = {"learning_starts": 8, "batch_size": 8}
    classes = {
        "a2c": (A2C, {}),
        "ppo": (PPO, {"n_steps": 16, "batch_size": 16, "n_epochs": 2}),
        "dqn": (DQN, off_policy),
        "sac": (SAC, off_policy),
    }
    cls, options = classes[name]
    return cls("MlpPolicy", env, seed=0, device="cpu", **options, **kwargs)


@pytest.mark.parametrize("what", ["reward", "observation"])
@pytest.mark.parametrize(
    ("algo", "box", "within"), [("a2c", False, 5), ("ppo", True, 16), ("dqn", False, 16), ("sac", True, 16)]
)
def test_the_environment_s_nan_is_told_from_a_diverged_training(algo, box, within, what):
    failing = model(algo, gym.make("TinyBroken-v0", what=what, box=box))
    with pytest.raises(NonFiniteError, match=rf"the environment has returned an? {what} that is NaN or infinite") as caught:
        RLTrainer(max_steps=1000).fit(failing)
    assert failing.num_timesteps <= within
    assert "\n" not in str(caught.value)


def test_a_nan_of_any_env_is_told_though_it_has_passed_when_the_update_is_over():
    """An update lays the rows of the envs one after another."""
    env = DummyVecEnv([lambda what=what: gym.make("TinyBroken-v0", what=what, box=True) for what in ("", "observation")])
    failing = model("ppo", env)
    with pytest.raises(NonFiniteError, match="the environment has returned an observation that is NaN or infinite"):
        RLTrainer(max_steps=1000).fit(failing)
    assert np.isfinite(failing._last_obs).all()


@pytest.mark.parametrize(("algo", "env"), [("a2c", "CartPole-v1"), ("ppo", "CartPole-v1"), ("sac", "TinyCount-v0")])
def test_an_absurd_learning_rate_is_named_as_such(algo, env):
    with pytest.raises(NonFiniteError, match=DIVERGED):
        RLTrainer(max_steps=1000).fit(model(algo, env, learning_rate=1e30))


def test_ars_is_looked_at_after_each_update():
    failing = ARS("LinearPolicy", gym.make("TinyBroken-v0"), n_delta=2, seed=0, device="cpu")
    with pytest.raises(NonFiniteError, match=r"the policy's weights are not finite after 32 env steps of ARS"):
        RLTrainer(max_steps=1000).fit(failing)


def test_weights_that_go_bad_without_a_loss_are_found_at_the_next_look():
    healthy = model("dqn", "CartPole-v1")
    healthy.set_logger(Logger(None, []))
    with torch.no_grad():
        next(healthy.policy.parameters()).view(-1)[0] = np.inf
    check_finite(healthy, CHECK_EVERY - 1)
    with pytest.raises(NonFiniteError, match="the policy's weights are not finite"):
        check_finite(healthy, CHECK_EVERY)


def test_another_error_stays_what_it_is():
    class Broken(BaseCallback):
        def _on_step(self):
            raise ValueError("the user's own")

    with pytest.raises(ValueError, match="the user's own"):
        RLTrainer(max_steps=100, rl_callback=Broken()).fit(model("ppo", "CartPole-v1"))


def test_the_command_says_one_line_and_exits_with_1(tmp_path, capsys):
    (tmp_path / "c.yml").write_text("TinyBroken-v0: {policy: MlpPolicy, n_timesteps: 1000, n_steps: 16, batch_size: 16}\n")
    arguments = "train --algo ppo --env TinyBroken-v0 --gym-packages tiny_envs --verbose 0 --eval-freq 0 --seed 0"
    code = main([*arguments.split(), "-f", str(tmp_path / "logs"), "-conf", str(tmp_path / "c.yml")])
    told = capsys.readouterr()
    assert code == 1
    assert told.out == ""
    assert told.err.startswith("lit-sb3-ray: error: train/")
    assert told.err.endswith("16 env steps of PPO: the environment has returned a reward that is NaN or infinite\n")
    assert told.err.count("\n") == 1
