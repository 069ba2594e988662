"""Noticing NaN and infinity early, and telling whether the environment or the training has brought them in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from lit_sb3_ray.errors import NonFiniteError

# Weights are looked at at least this often when iterations are as short as one env step.
CHECK_EVERY = 100


def check_finite(algorithm: BaseAlgorithm, iteration: int) -> None:
    """Looks at the losses of the last update and, every now and then, at the weights.

    Args:
        algorithm: The algorithm, after an iteration.
        iteration: Iterations done.

    Raises:
        NonFiniteError: One of them is NaN or infinite.
    """
    for name, value in algorithm.logger.name_to_value.items():
        if name.startswith("train/") and name.endswith("loss") and not math.isfinite(value):
            raise NonFiniteError(_told(algorithm, f"{name} is {value}"))
    short = hasattr(algorithm, "replay_buffer")
    if (not short or iteration % CHECK_EVERY == 0) and not _weights_are_finite(algorithm):
        raise NonFiniteError(_told(algorithm, "the policy's weights are not finite"))


@contextmanager
def explaining(algorithm: BaseAlgorithm) -> Iterator[None]:
    """Turns an error that NaN causes, such as torch's refusal to sample from it, into one that says where the NaN is from.

    Args:
        algorithm: The algorithm that runs meanwhile.

    Raises:
        NonFiniteError: Something failed, and there is NaN or infinity in the environment's data or the policy's weights.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if _culprit(algorithm) is None and _weights_are_finite(algorithm):
            raise
        raise NonFiniteError(_told(algorithm, f"{type(error).__name__}: {error},")) from error


def parameters(algorithm: BaseAlgorithm) -> list[torch.Tensor]:
    """The policy's weights, detached; none where it is no torch module."""
    policy: object = algorithm.policy
    return [parameter.detach() for parameter in policy.parameters()] if isinstance(policy, torch.nn.Module) else []


def _weights_are_finite(algorithm: BaseAlgorithm) -> bool:
    weights = parameters(algorithm)
    if not weights:
        return True
    norms = torch.stack(torch._foreach_norm(weights))
    return bool(torch.isfinite(norms.sum()))


def _culprit(algorithm: Any) -> str | None:
    """What the environment has returned that is not finite, if anything."""
    buffer = getattr(algorithm, "replay_buffer", None) or getattr(algorithm, "rollout_buffer", None)
    # A full one is looked at whole: an update has laid the rows of a rollout's envs one after another.
    rows = None if buffer is None or buffer.full else buffer.pos
    latest = _is_finite(getattr(algorithm, "_last_obs", None))
    if not latest or not _is_finite(getattr(buffer, "observations", None), rows):
        return "an observation"
    return None if _is_finite(getattr(buffer, "rewards", None), rows) else "a reward"


def _is_finite(values: Any, rows: int | None = None) -> bool:
    if isinstance(values, dict):
        return all(_is_finite(item, rows) for item in values.values())
    floats = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return not floats or bool(np.isfinite(values[:rows]).all())


def _told(algorithm: BaseAlgorithm, what: str) -> str:
    culprit = _culprit(algorithm)
    why = "training has diverged; a lower learning_rate or max_grad_norm, or normalised observations, usually helps"
    if culprit is not None:
        why = f"the environment has returned {culprit} that is NaN or infinite"
    return f"{what} after {algorithm.num_timesteps:,} env steps of {type(algorithm).__name__}: {why}"
