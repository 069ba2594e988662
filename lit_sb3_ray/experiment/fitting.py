"""Whether an algorithm and its policy suit the spaces of an environment, told by the names of the hyperparameters."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import FlattenExtractor, NatureCNN
from stable_baselines3.her import HerReplayBuffer

from lit_sb3_ray.config.algorithms import is_stock, nearest_built_in
from lit_sb3_ray.config.hyperparams import Hyperparams
from lit_sb3_ray.errors import ConfigError

GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")
CONTINUOUS = ("crossq", "ddpg", "sac", "td3", "tqc")
DISCRETE = ("dqn", "qrdqn")


def check_fit(hyperparams: Hyperparams, env_id: str, observations: spaces.Space, actions: spaces.Space) -> None:  # type: ignore[type-arg]
    """Refuses an algorithm, a policy or a replay buffer that an environment does not suit.

    What is not one of Stable-Baselines3's own classes is left to its own constructor.

    Args:
        hyperparams: The hyperparameters.
        env_id: The environment's id, for messages.
        observations: The observation space, with all wrappers.
        actions: The action space.

    Raises:
        ConfigError: One of them does not; the message says why and what to take.
    """
    problem = (
        _of_actions(hyperparams, actions) or _of_policy(hyperparams, observations) or _of_buffer(hyperparams, observations)
    )
    if problem is not None:
        raise ConfigError(f"{hyperparams.algo} on {env_id}: {problem}")


def check_extractor(model: Any, env_id: str) -> None:
    """Refuses a policy of the user's whose network cannot read observations that are a Dict.

    Args:
        model: The model.
        env_id: The environment's id, for messages.

    Raises:
        ConfigError: Its features extractor is for single arrays.
    """
    policy = getattr(model, "policy", None)
    if not isinstance(policy, torch.nn.Module) or not isinstance(model.observation_space, spaces.Dict):
        return
    for module in policy.modules():
        extractor, extract = getattr(module, "features_extractor", None), getattr(type(module), "extract_features", None)
        if isinstance(extractor, FlattenExtractor | NatureCNN) and _is_stock(extract):
            raise ConfigError(
                f"policy {type(policy).__name__} on {env_id}: its {type(extractor).__name__} does not take observations of "
                f"{shown(model.observation_space)}: give another features_extractor_class in policy_kwargs, such as "
                "stable_baselines3.common.torch_layers.CombinedExtractor, or descend from a MultiInput policy"
            )


def _is_stock(function: Any) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] in ("stable_baselines3", "sb3_contrib")


def _of_actions(hyperparams: Hyperparams, actions: spaces.Space) -> str | None:  # type: ignore[type-arg]
    if hyperparams.noise is not None and not isinstance(actions, spaces.Box):
        return f"noise_type needs continuous actions, and the actions are {shown(actions)}"
    if hyperparams.model_kwargs.get("use_sde") is True and not isinstance(actions, spaces.Box):
        return f"use_sde needs continuous actions, and the actions are {shown(actions)}"
    if not is_stock(hyperparams.algo_class):
        return None
    name = nearest_built_in(hyperparams.algo)
    if name in CONTINUOUS and not isinstance(actions, spaces.Box):
        return f"{name} is for continuous actions, and the actions are {shown(actions)}"
    if name in DISCRETE and not isinstance(actions, spaces.Discrete):
        return f"{name} is for discrete actions, and the actions are {shown(actions)}"
    if name == "ppo_mask" and isinstance(actions, spaces.Box):
        return f"{name} is for discrete actions, which can be masked, and the actions are {shown(actions)}"
    return None


def _of_policy(hyperparams: Hyperparams, observations: spaces.Space) -> str | None:  # type: ignore[type-arg]
    policy, kwargs = hyperparams.policy, hyperparams.model_kwargs.get("policy_kwargs") or {}
    if not isinstance(policy, str) or not is_stock(hyperparams.algo_class) or "features_extractor_class" in kwargs:
        return None
    kind = policy.removesuffix("Policy").removesuffix("Lstm")
    if kind not in ("Mlp", "Cnn", "MultiInput"):
        return None
    is_dict = isinstance(observations, spaces.Dict)
    other = policy.replace(kind, "MultiInput" if is_dict else "Mlp", 1)
    hint = f": take {other!r}" if other in hyperparams.algo_class.policy_aliases else ""
    if (kind == "MultiInput") != is_dict:
        return f"policy {policy!r} does not take observations of {shown(observations)}{hint}"
    extractor = kwargs.get("features_extractor_kwargs") or {}
    normalized = not kwargs.get("normalize_images", True) or bool(extractor.get("normalized_image", False))
    if kind == "Cnn" and not is_image_space(observations, check_channels=False, normalized_image=normalized):
        return f"policy {policy!r} takes images, and the observations are {shown(observations)}{hint}"
    return None


def _of_buffer(hyperparams: Hyperparams, observations: spaces.Space) -> str | None:  # type: ignore[type-arg]
    buffer = hyperparams.model_kwargs.get("replay_buffer_class")
    if not (isinstance(buffer, type) and issubclass(buffer, HerReplayBuffer)):
        return None
    if isinstance(observations, spaces.Dict) and set(GOAL_KEYS) <= set(observations.spaces):
        return None
    needs = f"observations that are a Dict with {', '.join(GOAL_KEYS)}"
    return f"replay_buffer_class {buffer.__name__!r} needs {needs}, and they are {shown(observations)}"


def shown(space: spaces.Space) -> str:  # type: ignore[type-arg]
    """A space in few words: bounds of many numbers say nothing here."""
    if isinstance(space, spaces.Box):
        return f"Box{space.shape} of {space.dtype}"
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(map(str, space.spaces))})"
    return str(space)
