"""Making an experiment's model."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.config.hyperparams import Hyperparams
from lit_sb3_ray.config.plain import copy_containers
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.fitting import check_extractor, check_fit, shown
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.lit.speed import construction_threads


def make_model(resolved: Hyperparams, env: VecEnv, options: dict[str, Any], num_threads: int, env_id: str) -> BaseAlgorithm:
    """Makes a new model.

    Args:
        resolved: Its hyperparameters.
        env: Its envs.
        options: `seed`, `verbose` and `device`.
        num_threads: The threads that the user asked for.
        env_id: The env's id, for messages.

    Raises:
        ConfigError: The hyperparameters do not suit the env.
    """
    kwargs = copy_containers(resolved.model_kwargs)
    check_fit(resolved, env_id, env.observation_space, env.action_space)
    if resolved.noise is not None:
        kwargs["action_noise"] = build_noise(resolved, env)
    with refusing(f"{resolved.algo} on {env_id}"), construction_threads(num_threads):
        model: BaseAlgorithm = resolved.algo_class(policy=resolved.policy, env=env, **{**options, **kwargs})
    check_extractor(model, env_id)
    return model


def build_noise(resolved: Hyperparams, env: VecEnv) -> ActionNoise:
    """Builds the action noise that hyperparameters ask for.

    Raises:
        ConfigError: The actions are not continuous.
    """
    if resolved.noise is None or not isinstance(env.action_space, spaces.Box):
        raise ConfigError(f"noise_type needs continuous actions, and the actions are {shown(env.action_space)}")
    return resolved.noise.build(int(np.prod(env.action_space.shape)))
