"""RLEnvDataModule makes each stage's env when it is first asked for."""

from __future__ import annotations

import gymnasium as gym
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, is_vecenv_wrapped

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLEnvDataModule, RLTrainer
from lit_sb3_ray.errors import ConfigError


class TestMaking:
    def test_an_id_an_env_and_a_vecenv_become_monitored_vecenvs(self):
        bare = DummyVecEnv([lambda: gym.make("TinyCount-v0")] * 2)
        data = RLEnvDataModule("TinyCount-v0", gym.make("TinyCount-v0"), bare, make_vec_env("TinyCount-v0"))
        train, val, test, predict = (data.get_env(stage) for stage in ("fit", "validate", "test", "predict"))
        assert all(isinstance(env, VecEnv) for env in (train, val, test, predict))
        assert train.env_is_wrapped(Monitor) == val.env_is_wrapped(Monitor) == [True]
        assert is_vecenv_wrapped(test, VecMonitor)
        assert (test.num_envs, test.venv) == (2, bare)
        assert not is_vecenv_wrapped(predict, VecMonitor)
        assert data.get_env("fit") is train

    def test_monitors_can_be_left_out(self):
        data = RLEnvDataModule("TinyCount-v0", DummyVecEnv([lambda: gym.make("TinyCount-v0")]), monitor_wrapper=False)
        assert data.get_env("fit").env_is_wrapped(Monitor) == [False]
        assert not is_vecenv_wrapped(data.get_env("validate"), VecMonitor)

    def test_nothing_is_made_before_it_is_needed(self):
        data = RLEnvDataModule("NoSuchEnv-v0", "TinyCount-v0")
        assert data.get_env("fit", resolve=False) == "NoSuchEnv-v0"
        data.setup("validate")
        with pytest.raises(gym.error.NameNotFound):
            data.setup("fit")


class TestFallbacks:
    def test_a_stage_falls_back_to_the_one_before(self):
        train, val = gym.make("TinyCount-v0"), gym.make("TinyCount-v0")
        data = RLEnvDataModule(train, val)
        assert data.get_env("predict") is data.get_env("test") is data.get_env("validate")
        assert data.get_env("validate") is not data.get_env("fit")
        assert data.get_env("predict", resolve=False) is val

    def test_an_id_is_made_anew_so_that_no_stage_disturbs_another(self):
        data = RLEnvDataModule("TinyCount-v0")
        assert data.get_env("validate") is not data.get_env("fit")
        assert data.get_env("validate") is data.get_env("validate")

    def test_what_is_missing_or_unknown_is_told(self):
        with pytest.raises(ConfigError, match="no env was given for the stage 'fit'"):
            RLEnvDataModule(val_env="TinyCount-v0").get_env("fit")
        with pytest.raises(ConfigError, match="unknown stage 'training': known are fit, validate, test, predict"):
            RLEnvDataModule("TinyCount-v0").get_env("training")


class TestState:
    def test_only_ids_are_kept(self):
        data = RLEnvDataModule("TinyCount-v0", gym.make("TinyCount-v0"), "CartPole-v1")
        assert data.state_dict() == {"train": "TinyCount-v0", "test": "CartPole-v1"}

    def test_they_fill_what_is_empty(self):
        data = RLEnvDataModule("CartPole-v1")
        data.load_state_dict({"train": "TinyCount-v0", "test": "TinyCount-v0"})
        assert data.get_env("fit", resolve=False) == "CartPole-v1"
        assert data.get_env("test", resolve=False) == "TinyCount-v0"


class Closing(gym.Wrapper):
    closed = 0

    def close(self):
        self.closed += 1
        super().close()


class TestClosing:
    def test_what_was_made_is_closed_and_what_was_given_is_not(self):
        given = Closing(gym.make("TinyCount-v0"))
        data = RLEnvDataModule("CartPole-v1", given)
        made, inner = data.get_env("fit"), Closing(gym.make("CartPole-v1"))
        made.envs[0] = inner
        data.get_env("validate")
        data.close()
        data.close()
        assert (inner.closed, given.closed) == (1, 0)
        assert data.get_env("fit") is not made

    def test_an_error_in_training_closes_them(self):
        data = RLEnvDataModule("TinyCount-v0")
        model = PPO("MlpPolicy", data.get_env("fit"), n_steps=16, device="cpu")
        inner = data.get_env("fit").envs[0] = Closing(data.get_env("fit").envs[0])

        def fail(_):
            raise RuntimeError("broken")

        inner.unwrapped.step = fail
        with pytest.raises(RuntimeError, match="broken"):
            RLTrainer(max_steps=16).fit(model, data)
        assert inner.closed == 1


def test_training_and_evaluating_with_one_data_module():
    data = RLEnvDataModule("TinyCount-v0", test_env=make_vec_env("TinyCount-v0", 3))
    trainer = RLTrainer(max_steps=32)
    model = trainer.fit(PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, device="cpu"), data)
    assert model.get_env() is data.get_env("fit")
    assert trainer.validate(datamodule=data)[0]["validate/mean_reward"] == 15.0
    assert trainer.test(model, data, n_eval_episodes=3)[0]["test/n_eval_episodes"] == 3
