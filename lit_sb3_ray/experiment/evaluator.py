"""Evaluating copies of a model that is trained elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as GymSpec
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.config.hyperparams import Hyperparams
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.experiment.evaluations import EvaluationPlan
from lit_sb3_ray.experiment.load import load_model
from lit_sb3_ray.lit.evaluation import Evaluation, evaluate, evaluation_seed
from lit_sb3_ray.lit.state import set_normalize_statistics


@dataclass(frozen=True)
class EvaluatorRecipe:
    """What an evaluator is made of: plain data that can be sent to another process and built there.

    Attributes:
        spec: Recipe of one environment.
        n_envs: How many of them.
        stack: The further arguments of `build_vec_env`.
        hyperparams: Those of the model.
        plan: How evaluations are played.
        vec_env_cls: What steps the environments; None for SB3's in-process class.
        registered: gymnasium's recipe of the environment, which may be registered in this process alone.
    """

    spec: EnvSpec
    n_envs: int
    stack: Mapping[str, Any]
    hyperparams: Hyperparams
    plan: EvaluationPlan
    vec_env_cls: type[VecEnv] | None = None
    registered: GymSpec = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "registered", self.spec.check())
        # Callbacks are the learner's, and may hold what cannot be sent.
        object.__setattr__(self, "hyperparams", replace(self.hyperparams, callbacks=()))

    def __call__(self) -> Evaluator:
        """Builds the evaluator."""
        gym.registry.setdefault(self.registered.id, self.registered)
        stepping: dict[str, Any] = {} if self.vec_env_cls is None else {"vec_env_cls": self.vec_env_cls}
        return Evaluator(build_vec_env(self.spec, self.n_envs, **stepping, **self.stack), self.hyperparams, self.plan)


class Evaluator:
    """Plays copies of a model in environments of its own, as `EvaluationCallback` plays the model itself."""

    def __init__(self, env: VecEnv, hyperparams: Hyperparams, plan: EvaluationPlan) -> None:
        """Takes the environments.

        Args:
            env: Where to play.
            hyperparams: Those of the model.
            plan: How evaluations are played.
        """
        self._env = env
        self._hyperparams = hyperparams
        self._plan = plan

    def evaluate(self, num_timesteps: int, model: bytes, statistics: bytes | None) -> Evaluation:
        """Evaluates a copy.

        Args:
            num_timesteps: Env steps at which it was taken.
            model: What the algorithm's `save` wrote.
            statistics: What `VecNormalize.save` wrote; None where nothing is normalised.

        Returns:
            What evaluating the model itself would have given at that moment.
        """
        copy: Any = load_model(BytesIO(model), self._hyperparams, self._env, "cpu", self._plan.seed)
        if statistics is not None:
            set_normalize_statistics(copy, pickle.loads(statistics))
        return evaluate(
            copy,
            self._env,
            self._plan.n_episodes,
            deterministic=self._plan.deterministic,
            seed=evaluation_seed(self._plan.seed, num_timesteps),
            use_masking=self._plan.use_masking,
        )
