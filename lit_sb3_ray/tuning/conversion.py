"""From what a trial has drawn to hyperparameters: the same for a running trial and for one that is loaded again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.tuning.spaces import ON_POLICY, space_name

NETWORKS = {
    "tiny": [64],
    "small": [64, 64],
    "medium": [256, 256],
    "big": [400, 300],
    "large": [256, 256, 256],
    "verybig": [512, 512, 512],
}
"""Widths of the hidden layers behind each name."""

ACTIVATIONS = {"tanh": "nn.Tanh", "relu": "nn.ReLU", "elu": "nn.ELU", "leaky_relu": "nn.LeakyReLU"}

POLICY_KEYS = frozenset({"net_arch", "activation_fn", "n_quantiles"})
HER_KEYS = frozenset({"n_sampled_goal", "goal_selection_strategy"})
COMPLEMENT, POWER = "one_minus_", "_pow"


def convert(
    algo: str,
    params: Mapping[str, Any],
    entry: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    n_envs: int | None = None,
) -> dict[str, Any]:
    """Makes hyperparameters of the parameters of a trial.

    Args:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        params: What the trial has drawn, by the names of the space.
        entry: The unprocessed hyperparameters of the file, which the trial's go over; of its `policy_kwargs` and
            `replay_buffer_kwargs` stays what the trial has not drawn.
        overrides: The hyperparameters that go over the trial's.
        n_envs: Training envs, if not those of the hyperparameters.

    Returns:
        Plain values under the names of the hyperparameter files, to be merged between `entry` and `overrides`. A batch is no
        larger than the rollout.

    Raises:
        ConfigError: The algorithm has no space, or `entry` has something unreadable to merge into.
    """
    on_policy = space_name(algo) in ON_POLICY
    converted: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    buffer: dict[str, Any] = {}
    for name, value in params.items():
        if name in POLICY_KEYS:
            policy[name] = _policy_value(name, value, on_policy)
        elif name in HER_KEYS:
            buffer[name] = value
        elif name.startswith(COMPLEMENT):
            converted[name.removeprefix(COMPLEMENT)] = 1 - value
        elif name.endswith(POWER):
            converted[name.removesuffix(POWER)] = 2**value
        else:
            converted[name] = value
    _derive(converted)
    if on_policy and "batch_size" in converted:
        rollout = _rollout({**entry, **converted, **(overrides or {})}, n_envs)
        # SB3 would take a larger batch for the whole rollout, too, but warn of it.
        converted["batch_size"] = min(converted["batch_size"], rollout)
    if policy:
        converted["policy_kwargs"] = {**_mapping(entry, "policy_kwargs"), **policy}
    if buffer:
        converted["replay_buffer_kwargs"] = {**_mapping(entry, "replay_buffer_kwargs"), **buffer}
    return converted


def _derive(converted: dict[str, Any]) -> None:
    """Replaces what was drawn as a share of another value."""
    if "train_freq" in converted:
        converted["gradient_steps"] = max(converted["train_freq"] // converted.pop("subsample_steps", 1), 1)
    if "top_frac_size" in converted:
        converted["n_top"] = max(int(converted.pop("top_frac_size") * converted["n_delta"]), 1)


def _rollout(merged: Mapping[str, Any], n_envs: int | None) -> int:
    """Env steps of one rollout. What is no number here is reported when the hyperparameters are resolved."""
    envs = n_envs or to_number(merged.get("n_envs", 1)) or 1
    return int((to_number(merged["n_steps"]) or 1) * envs)


def _policy_value(name: str, value: Any, on_policy: bool) -> Any:
    if name == "activation_fn":
        return ACTIVATIONS[value]
    if name != "net_arch":
        return value
    layers = NETWORKS[value]
    return {"pi": list(layers), "vf": list(layers)} if on_policy else list(layers)


def _mapping(base: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = base.get(key)
    parsed = parse_expression(value, key) if isinstance(value, str) else value
    return dict(parsed or {})
