"""RLEnvDataModule: the envs of each stage, in the place where Lightning keeps data."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytorch_lightning as pl
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, is_vecenv_wrapped

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.module import Ticks

Env = str | gym.Env[Any, Any] | VecEnv
STAGES = {"fit": "train", "train": "train", "validate": "val", "val": "val", "test": "test", "predict": "predict"}


class RLEnvDataModule(pl.LightningDataModule):
    """Envs for training, validation, test and prediction, made when first needed.

    A stage without an env of its own falls back: prediction to test, test to validation, validation to training. An id that
    is fallen back to is made once more, so that no stage disturbs another; an env that was given as an object is shared.
    """

    def __init__(
        self,
        train_env: Env | None = None,
        val_env: Env | None = None,
        test_env: Env | None = None,
        predict_env: Env | None = None,
        monitor_wrapper: bool = True,
        verbose: int = 0,
    ) -> None:
        """Keeps the envs.

        Args:
            train_env: An env id, an env or a `VecEnv`.
            val_env: The same, for `validate`.
            test_env: The same, for `test`.
            predict_env: The same, for `predict`.
            monitor_wrapper: Wrap envs that do not record episodes in a `Monitor`.
            verbose: 1 makes SB3 say what it wraps.
        """
        super().__init__()
        self.monitor_wrapper = monitor_wrapper
        self.verbose = verbose
        self._given = {"train": train_env, "val": val_env, "test": test_env, "predict": predict_env}
        self._made: dict[str, VecEnv] = {}
        self._own: list[VecEnv] = []

    def setup(self, stage: str) -> None:
        """Makes the stage's env."""
        self.get_env(stage)

    def get_env(self, stage: str = "fit", resolve: bool = True) -> VecEnv | Env | None:
        """The env of a stage.

        Args:
            stage: `fit`, `validate`, `test` or `predict`.
            resolve: False returns what was given, unmade.

        Raises:
            ConfigError: An unknown stage, or one that no env was given for.
        """
        if stage not in STAGES:
            raise ConfigError(f"unknown stage {stage!r}: known are fit, validate, test, predict")
        order = list(self._given)
        fallbacks = order[order.index(STAGES[stage]) :: -1]
        name = next((candidate for candidate in fallbacks if self._given[candidate] is not None), None)
        if name is None:
            raise ConfigError(f"no env was given for the stage {stage!r}")
        if not resolve:
            return self._given[name]
        key = STAGES[stage] if isinstance(self._given[name], str) else name
        if key not in self._made:
            self._made[key] = self._make(self._given[name])
            if isinstance(self._given[name], str):
                self._own.append(self._made[key])
        return self._made[key]

    def train_dataloader(self) -> Ticks:
        """Ticks: an algorithm collects its own data."""
        return Ticks()

    def state_dict(self) -> dict[str, Any]:
        """The env ids that were given as strings."""
        return {name: env for name, env in self._given.items() if isinstance(env, str)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes env ids for stages that have no env yet."""
        for name, env_id in state_dict.items():
            if self._given.get(name) is None:
                self._given[name] = env_id

    def on_exception(self, exception: BaseException) -> None:
        """Closes the envs that were made from ids."""
        self.close()

    def close(self) -> None:
        """Closes the envs that were made from ids; those that were given as objects are their owner's."""
        for env in self._own:
            env.close()
        self._own.clear()
        self._made.clear()

    def _make(self, env: Env | None) -> VecEnv:
        if isinstance(env, str):
            env = gym.make(env)
        if isinstance(env, VecEnv):
            monitored = is_vecenv_wrapped(env, VecMonitor) or all(env.env_is_wrapped(Monitor))
            return VecMonitor(env) if self.monitor_wrapper and not monitored else env
        assert env is not None
        wrapped = BaseAlgorithm._wrap_env(env, self.verbose, self.monitor_wrapper)
        assert isinstance(wrapped, DummyVecEnv | VecEnv)
        return wrapped
