"""Hyperparameters that may change while a model trains: none of them changes what its weights and optimizers look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.signatures import signature_of
from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

SCHEDULED = {
    "learning_rate": "lr_schedule",
    "clip_range": "clip_range",
    "clip_range_vf": "clip_range_vf",
    "delta_std": "delta_std_schedule",
}
"""Scalars of which an algorithm keeps a function of its progress, and the attribute that it is kept in."""

DISCOUNTS = frozenset({"gamma", "gae_lambda"})

SCALARS = (
    frozenset(SCHEDULED)
    | DISCOUNTS
    | {
        "cg_max_steps",
        "ent_coef",
        "max_grad_norm",
        "n_critic_updates",
        "n_epochs",
        "target_kl",
        "target_update_interval",
        "tau",
        "vf_coef",
    }
)
"""What `set_scalars` can set, by the names of the hyperparameter files."""


def set_scalars(algorithm: BaseAlgorithm, hyperparams: Mapping[str, Any]) -> None:
    """Gives an algorithm other scalars, which the next iteration of its training uses.

    A saved model holds the scalars that it was trained with: this comes after it is loaded. Also what the algorithm has
    handed on is set: the discount factors of its buffer and of `VecNormalize`.

    Args:
        algorithm: An algorithm of SB3 or sb3-contrib, or one that derives from them.
        hyperparams: New values under their names in the hyperparameter files; numbers, or None where that is a value.

    Raises:
        ConfigError: A name that is none of `SCALARS`, that the algorithm does not have, or whose value it learns by itself.
    """
    for name, value in hyperparams.items():
        if name not in SCALARS:
            raise unknown("scalar", name, SCALARS)
        if name not in signature_of(type(algorithm)).parameters:
            raise ConfigError(f"{type(algorithm).__name__} has no {name} that could change while it trains")
        if name in SCHEDULED:
            _set_schedule(algorithm, name, value)
        elif name in DISCOUNTS:
            _set_discount(algorithm, name, value)
        elif name == "ent_coef" and hasattr(algorithm, "ent_coef_optimizer"):
            _set_fixed_entropy(algorithm, value)
        else:
            setattr(algorithm, name, value)


def _set_schedule(algorithm: Any, name: str, value: float | None) -> None:
    from stable_baselines3.common.utils import FloatSchedule

    setattr(algorithm, SCHEDULED[name], None if value is None else FloatSchedule(value))
    if name == "learning_rate":
        algorithm.learning_rate = value


def _set_discount(algorithm: Any, name: str, value: float) -> None:
    buffers = (getattr(algorithm, kind, None) for kind in ("rollout_buffer", "replay_buffer"))
    for owner in (algorithm, *buffers, algorithm.get_vec_normalize_env()):
        if owner is not None and name in vars(owner):
            setattr(owner, name, value)


def _set_fixed_entropy(algorithm: Any, value: float) -> None:
    import torch

    if algorithm.ent_coef_optimizer is not None:
        raise ConfigError(f"ent_coef is {algorithm.ent_coef!r}: {type(algorithm).__name__} learns it, so it cannot be set")
    algorithm.ent_coef = value
    algorithm.ent_coef_tensor = torch.tensor(float(value), device=algorithm.device)
