"""Speed: what changes no result is always on; what changes the last bits is on with `fast`."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch.distributions import Distribution

logger = logging.getLogger(__name__)

# Below this many weights a second thread costs more in hand-over than it saves.
WEIGHTS_PER_THREAD = 200_000
# Weights are looked at at least this often when iterations are as short as one env step.
CHECK_EVERY = 100


class NonFiniteError(RuntimeError):
    """A loss or a weight has become NaN or infinite; going on would only lose time."""


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Turns off `torch.distributions`' argument checks, which cost about a tenth of PPO's time and change no result.

    They are also what notices NaN; `check_finite` takes that over.
    """
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def check_finite(algorithm: BaseAlgorithm, iteration: int) -> None:
    """Looks at the losses of the last update and, every now and then, at the weights.

    Raises:
        NonFiniteError: One of them is NaN or infinite.
    """
    for name, value in algorithm.logger.name_to_value.items():
        if name.startswith("train/") and name.endswith("loss") and not math.isfinite(value):
            raise NonFiniteError(_told(algorithm, f"{name} is {value}"))
    on_policy = hasattr(algorithm, "rollout_buffer")
    if (on_policy or iteration % CHECK_EVERY == 0) and not _weights_are_finite(algorithm):
        raise NonFiniteError(_told(algorithm, "the policy's weights are not finite"))


def use_fused_optimizers(algorithm: BaseAlgorithm) -> None:
    """Lets every Adam of an algorithm update all weights in one call; results differ in the last bits."""
    for name in algorithm._get_torch_save_params()[0]:
        optimizer = _attribute(algorithm, name)
        if isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW):
            for group in optimizer.param_groups:
                if not group.get("differentiable") and not group.get("fused"):
                    group.update(fused=True, foreach=False)


def fit_threads(algorithm: BaseAlgorithm, num_threads: int = -1) -> int:
    """Sets the number of threads torch may use.

    Args:
        algorithm: The algorithm whose network decides when `num_threads` does not.
        num_threads: A number the user asked for; below 1 it is one thread for a small network and else all CPUs given.

    Returns:
        The number set.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if num_threads < 1:
        weights = sum(parameter.numel() for parameter in algorithm.policy.parameters())
        num_threads = 1 if algorithm.device.type != "cpu" else max(1, min(cpus, math.ceil(weights / WEIGHTS_PER_THREAD)))
    if num_threads != torch.get_num_threads():
        torch.set_num_threads(num_threads)
    return num_threads


def _weights_are_finite(algorithm: BaseAlgorithm) -> bool:
    parameters = [parameter.detach() for parameter in algorithm.policy.parameters()]
    if not parameters:
        return True
    norms = torch.stack(torch._foreach_norm(parameters))
    return bool(torch.isfinite(norms.sum()))


def _told(algorithm: BaseAlgorithm, what: str) -> str:
    return (
        f"{what} after {algorithm.num_timesteps:,} env steps of {type(algorithm).__name__}: "
        "training has diverged; a lower learning_rate or max_grad_norm, or normalised observations, usually helps"
    )


def _attribute(algorithm: BaseAlgorithm, dotted: str) -> object:
    value: object = algorithm
    for name in dotted.split("."):
        value = getattr(value, name)
    return value
