"""From what a trial has drawn of a built-in space to hyperparameters.

It is the same for a running trial and for one that is loaded again: the drawn values alone say all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.tuning.space.batch import fit_batch
from lit_sb3_ray.tuning.space.nesting import nest
from lit_sb3_ray.tuning.space.spaces import ON_POLICY, space_name

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
SHARES = {"subsample_steps": "gradient_steps", "top_frac_size": "n_top"}
"""What is drawn as a share of another value, and the hyperparameter that comes of it."""


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
        Plain values under the names of the hyperparameter files, to be merged between `entry` and `overrides`. A batch
        divides the rollout; see `fit_batch`.

    Raises:
        ConfigError: The algorithm has no space, or `entry` has something unreadable to merge into.
    """
    overrides = overrides or {}
    on_policy = space_name(algo) in ON_POLICY
    drawn: dict[str, Any] = {}
    for name, value in params.items():
        if name in POLICY_KEYS:
            drawn[f"policy_kwargs.{name}"] = _policy_value(name, value, on_policy)
        elif name in HER_KEYS:
            drawn[f"replay_buffer_kwargs.{name}"] = value
        elif name.startswith(COMPLEMENT):
            drawn[name.removeprefix(COMPLEMENT)] = 1 - value
        elif name.endswith(POWER):
            drawn[name.removesuffix(POWER)] = 2**value
        else:
            drawn[name] = value
    _derive(drawn, overrides)
    converted = nest(drawn, entry)
    batch = fit_batch(algo, converted, entry, overrides, n_envs)
    return converted if batch is None else {**converted, "batch_size": batch}


def key_of(name: str) -> str:
    """Names the hyperparameter that a drawn parameter is for."""
    if name in POLICY_KEYS:
        return "policy_kwargs"
    if name in HER_KEYS:
        return "replay_buffer_kwargs"
    return SHARES.get(name) or name.removeprefix(COMPLEMENT).removesuffix(POWER)


def _derive(drawn: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Replaces what was drawn as a share of another value, which may be given on the command line."""
    share = drawn.pop("subsample_steps", None)
    if "train_freq" in drawn or share is not None:
        train_freq = drawn.get("train_freq") or int(to_number(overrides.get("train_freq")) or 1)
        drawn["gradient_steps"] = max(train_freq // (share or 1), 1)
    share = drawn.pop("top_frac_size", None)
    if share is not None:
        n_delta = drawn.get("n_delta") or int(to_number(overrides.get("n_delta")) or 1)
        drawn["n_top"] = max(int(share * n_delta), 1)
    dropped = to_number(overrides.get("top_quantiles_to_drop_per_net"))
    if dropped is not None and "policy_kwargs.n_quantiles" in drawn:
        # Something must be left of what each critic estimates.
        drawn["policy_kwargs.n_quantiles"] = max(drawn["policy_kwargs.n_quantiles"], int(dropped) + 1)


def _policy_value(name: str, value: Any, on_policy: bool) -> Any:
    if name == "activation_fn":
        return ACTIVATIONS[value]
    if name != "net_arch":
        return value
    layers = NETWORKS[value]
    return {"pi": list(layers), "vf": list(layers)} if on_policy else list(layers)
