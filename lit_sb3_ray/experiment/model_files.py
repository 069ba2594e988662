"""Which algorithm a saved model is of, told without reading anything of it that could be code."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from lit_sb3_ray.config.algorithms import BUILT_IN, nearest_built_in
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted import models

# What only some algorithms keep of themselves; the first that is there decides.
_KEYS = {
    "n_delta": {"ars"},
    "cg_max_steps": {"trpo"},
    "clip_range": {"ppo", "ppo_lstm", "ppo_mask"},
    "gae_lambda": {"a2c"},
    "exploration_fraction": {"dqn", "qrdqn"},
    "target_policy_noise": {"td3", "ddpg"},
    "top_quantiles_to_drop_per_net": {"tqc"},
    "target_entropy": {"sac", "crossq"},
}
# Where the policies of those are that the keys do not tell apart.
_POLICIES = {
    "sb3_contrib.common.maskable.policies": {"ppo_mask"},
    "sb3_contrib.common.recurrent.policies": {"ppo_lstm"},
    "sb3_contrib.crossq.policies": {"crossq"},
    "sb3_contrib.qrdqn.policies": {"qrdqn"},
    "stable_baselines3.common.policies": {"a2c", "ppo", "trpo"},
    "stable_baselines3.dqn.policies": {"dqn"},
    "stable_baselines3.sac.policies": {"sac"},
}


def check_algorithm(path: str, algo: str, where: str) -> None:
    """Refuses a model of another algorithm, where the file tells.

    Args:
        path: The model's `.zip`.
        algo: The algorithm that is to train on with it: a key of `ALGOS`, or `package.module:Class`.
        where: The flag that the path was given to.

    Raises:
        ConfigError: It is another's; the message names that.
    """
    asked = nearest_built_in(algo)
    possible = algorithms_of(read_data(path))
    if asked is None or asked in possible:
        return
    names = " or ".join(sorted(possible))
    raise ConfigError(f"{where} {path!r} is a model of {names}, not of {algo}: give --algo {min(possible)}, or another model")


def algorithms_of(data: dict[str, Any]) -> Collection[str]:
    """Tells which built-in algorithms a saved model can be of.

    Args:
        data: What the model's file says of its attributes.

    Returns:
        Their names; all of them where nothing tells.
    """
    by_keys = next((names for key, names in _KEYS.items() if key in data), set(BUILT_IN))
    policy = data.get("policy_class")
    module = policy.get("__module__") if isinstance(policy, dict) else None
    return by_keys & _POLICIES.get(str(module), by_keys) or by_keys


def read_data(path: str | Path) -> dict[str, Any]:
    """Reads what a model's file says of its attributes; nothing where it is damaged, which its loading will tell."""
    try:
        return models.read_data(Path(path))
    except ConfigError:
        return {}
