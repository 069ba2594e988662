"""The stages of Lightning's Trainer in which nothing is learnt: validate, test, predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytorch_lightning as pl
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.datamodule import RLEnvDataModule
from lit_sb3_ray.lit.evaluation import begin_anew, evaluate, normalized_alike
from lit_sb3_ray.lit.module import RLModule


class PlayingTrainer(pl.Trainer):
    """Plays what it is given, or what was trained last.

    Attributes:
        module: The module that was trained last; None before.
    """

    module: RLModule | None = None

    def validate(  # type: ignore[override]
        self, model: BaseAlgorithm | RLModule | None = None, datamodule: RLEnvDataModule | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Evaluates on the validation env; see `test` for the options."""
        return self._evaluate("validate", model, datamodule, **options)

    def test(  # type: ignore[override]
        self, model: BaseAlgorithm | RLModule | None = None, datamodule: RLEnvDataModule | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Evaluates on the test env.

        Args:
            model: The algorithm; the one last trained when None.
            datamodule: Brings the env; or give `env`.
            **options: `env`, `n_eval_episodes` (10), `deterministic` (True), `render` (False), `reward_threshold` (None),
                `return_episode_rewards` (False), `use_masking` (True), `seed` (None).

        Returns:
            One dict: `<stage>/mean_reward`, `std_reward`, `mean_episode_length`, `std_episode_length`, `n_eval_episodes`,
            `success_rate` if the env tells successes, and per-episode lists when asked for.

        Raises:
            ConfigError: No env, or one that does not normalise what the policy was trained on normalised.
            AssertionError: The mean return is below `reward_threshold`.
        """
        return self._evaluate("test", model, datamodule, **options)

    def predict(  # type: ignore[override]
        self,
        model: BaseAlgorithm | RLModule | None = None,
        observation: Any = None,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = True,
        env: VecEnv | None = None,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """One call of the policy.

        Args:
            model: The algorithm; the one last trained when None.
            observation: Shape `(*obs)` or `(n_envs, *obs)`; a fresh reset of `env` when None.
            state: Hidden states of a recurrent policy.
            episode_start: Shape `(n_envs,)`, for a recurrent policy.
            deterministic: Take the mode instead of sampling.
            env: Gives the observation when there is none.
            action_masks: Valid actions, for MaskablePPO.

        Returns:
            Actions, and the next hidden states if any.

        Raises:
            ConfigError: Neither an observation nor an env.
        """
        algorithm = self._algorithm(model)
        if observation is None:
            if env is None:
                raise ConfigError("predict needs an observation, or an env to take one from")
            observation = env.reset()
        masks = {} if action_masks is None else {"action_masks": action_masks}
        return algorithm.predict(observation, state, episode_start, deterministic, **masks)

    def _evaluate(
        self,
        stage: str,
        model: BaseAlgorithm | RLModule | None,
        datamodule: RLEnvDataModule | None,
        *,
        env: VecEnv | None = None,
        n_eval_episodes: int = 10,
        deterministic: bool = True,
        render: bool = False,
        reward_threshold: float | None = None,
        return_episode_rewards: bool = False,
        use_masking: bool = True,
        seed: int | None = None,
    ) -> list[dict[str, Any]]:
        algorithm = self._algorithm(model)
        if env is None:
            source = datamodule or RLEnvDataModule(algorithm.get_env())
            found = source.get_env(stage)
            assert isinstance(found, VecEnv)
            env = found
        options: dict[str, Any] = {"deterministic": deterministic, "render": render, "use_masking": use_masking, "seed": seed}
        with normalized_alike(algorithm, env):
            result = evaluate(algorithm, env, n_eval_episodes, **options)
        training_env = algorithm.get_env()
        # A Monitor or a transposition may have been put around either.
        if training_env is not None and env.unwrapped is training_env.unwrapped:
            begin_anew(algorithm)
        if reward_threshold is not None and result.mean_reward <= reward_threshold:
            raise AssertionError(f"mean return {result.mean_reward:.2f} is not above {reward_threshold:.2f}")
        row = {f"{stage}/{name}": value for name, value in result.figures().items()}
        if return_episode_rewards:
            row |= {f"{stage}/episode_rewards": list(result.returns), f"{stage}/episode_lengths": list(result.lengths)}
        return [row]

    def _algorithm(self, model: BaseAlgorithm | RLModule | None) -> BaseAlgorithm:
        if model is None and self.module is not None:
            return self.module.algorithm
        if model is None:
            raise ConfigError("no model was given and none was trained")
        return model.algorithm if isinstance(model, RLModule) else model
