"""Speed: what changes no result is always on; what changes the last bits is on with `fast`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BaseModel, BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor
from torch import nn
from torch.distributions import Distribution

from lit_sb3_ray.lit.finite import parameters
from lit_sb3_ray.scale.processors import usable_cpus

logger = logging.getLogger(__name__)

# A network of linear layers with fewer weights loses more to a second thread's hand-over than it gains.
MANY_WEIGHTS = 2_000_000
# Layers that compute the same in training and in evaluation mode. The rest of a network may be SB3's own classes.
MODELESS = frozenset(
    {nn.Conv2d, nn.ELU, nn.Flatten, nn.GELU, nn.Identity, nn.LeakyReLU, nn.Linear, nn.ReLU, nn.Sequential, nn.SiLU, nn.Tanh}
)
SB3_PACKAGES = ("stable_baselines3.", "sb3_contrib.")


@contextmanager
def faster(algorithm: BaseAlgorithm) -> Iterator[None]:
    """Everything here that changes no result, for as long as an algorithm trains.

    Args:
        algorithm: The algorithm; its networks and optimizers are made and stay the same meanwhile.
    """
    policy = algorithm.policy
    with unchecked_distributions(), fixed_mode(policy), known_parameters(policy), grouped_updates(algorithm):
        yield


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


@contextmanager
def fixed_mode(policy: nn.Module) -> Iterator[None]:
    """Keeps SB3 from switching a policy between training and evaluation mode where neither makes a difference.

    SB3 switches three times an env step off-policy, through every submodule. Only networks made of `MODELESS` layers, whose
    output is the same in both modes, are kept in one.
    """
    if not isinstance(policy, BasePolicy) or not all(_is_modeless(module) for module in policy.modules()):
        yield
        return
    policy.set_training_mode = _ignore_mode  # type: ignore[method-assign]
    try:
        yield
    finally:
        del policy.set_training_mode


def _ignore_mode(mode: bool) -> None:
    """Stands in for `set_training_mode`."""


def _is_modeless(module: nn.Module) -> bool:
    own = isinstance(module, BaseModel | BaseFeaturesExtractor | MlpExtractor)
    return type(module) in MODELESS or (own and type(module).__module__.startswith(SB3_PACKAGES))


@dataclass(frozen=True)
class KnownParameters:
    """Stands in for a module's `parameters()`, which walks through all submodules at every gradient clipping.

    An object instead of a closure, so that a deep copy of the module yields the copy's own weights.
    """

    every: tuple[nn.Parameter, ...]
    own: tuple[nn.Parameter, ...]

    def __call__(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        """The weights, in the module's own order."""
        return iter(self.every if recurse else self.own)


@contextmanager
def known_parameters(policy: nn.Module) -> Iterator[None]:
    """Lists a policy's weights once instead of at every update.

    Args:
        policy: A policy that gets no further weights meanwhile; one that is no torch module is left alone.
    """
    if not isinstance(policy, nn.Module):
        yield
        return
    policy.parameters = KnownParameters(tuple(policy.parameters()), tuple(policy.parameters(False)))  # type: ignore[method-assign]
    try:
        yield
    finally:
        del policy.parameters


@contextmanager
def grouped_updates(algorithm: BaseAlgorithm) -> Iterator[None]:
    """Lets every Adam go through its weights in C++ instead of in Python: the same operations, thus the same bits.

    torch does so by itself on a GPU only. Gradients are dropped without the profiler's records, and a fused step, which is
    short, is made without them, too.

    Args:
        algorithm: The algorithm whose optimizers do so meanwhile.
    """
    optimizers = _adams(algorithm)
    grouped = [optimizer for optimizer in optimizers if all(map(_is_plain, optimizer.param_groups))]
    for optimizer in optimizers:
        optimizer.zero_grad = partial(_drop_gradients, optimizer)  # type: ignore[method-assign]
    for optimizer in grouped:
        optimizer.step = partial(_step_grouped, optimizer)  # type: ignore[method-assign]
    for optimizer in optimizers:
        if all(group.get("fused") for group in optimizer.param_groups) and not _has_hooks(optimizer):
            grouped.append(optimizer)
            optimizer.step = partial(_unrecorded(type(optimizer).step), optimizer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for optimizer in optimizers:
            del optimizer.zero_grad
        for optimizer in grouped:
            del optimizer.step


def _is_plain(group: dict[str, Any]) -> bool:
    chosen = group.get("foreach") is not None or group.get("fused") or group.get("differentiable")
    return not chosen and not isinstance(group["lr"], torch.Tensor)


def _step_grouped(optimizer: torch.optim.Optimizer, closure: Any = None) -> Any:
    """One step with torch's switch on; off again after it, since a checkpoint keeps the switch."""
    for group in optimizer.param_groups:
        group["foreach"] = True
    try:
        return type(optimizer).step(optimizer, closure)
    finally:
        for group in optimizer.param_groups:
            group["foreach"] = None


def _has_hooks(optimizer: torch.optim.Optimizer) -> bool:
    return bool(optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks)


def _unrecorded(step: Any) -> Any:
    """The method itself, out of what torch wraps around it to call hooks and to tell profilers."""
    return step.__wrapped__ if getattr(step, "hooked", False) else step


def _drop_gradients(optimizer: torch.optim.Optimizer, set_to_none: bool = True) -> None:
    if not set_to_none:
        type(optimizer).zero_grad(optimizer, set_to_none=False)
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def use_fused_optimizers(algorithm: BaseAlgorithm) -> None:
    """Lets every Adam of an algorithm update all weights in one call; results differ in the last bits."""
    for optimizer in _adams(algorithm):
        for group in optimizer.param_groups:
            if not group.get("differentiable") and not group.get("fused"):
                group.update(fused=True, foreach=False)
        # A warm start's step counts move to the weights' device, where the fused update wants them.
        optimizer.load_state_dict(optimizer.state_dict())


def _adams(algorithm: BaseAlgorithm) -> list[torch.optim.Optimizer]:
    found = [_attribute(algorithm, name) for name in algorithm._get_torch_save_params()[0]]
    return [optimizer for optimizer in found if isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW)]


@contextmanager
def construction_threads(num_threads: int) -> Iterator[None]:
    """Sets the threads under which a network is made: orthogonal initialisation gives other last bits for another number.

    Args:
        num_threads: A number the user asked for; below 1 it is one, so that a seed gives the same weights on any machine.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, num_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit_threads(algorithm: BaseAlgorithm, num_threads: int = -1) -> int:
    """Sets the number of threads torch may use.

    Args:
        algorithm: The algorithm whose network decides when `num_threads` does not.
        num_threads: A number the user asked for; below 1 it is one thread for a GPU or a small network without
                convolutions, and else all CPUs given.

    Returns:
        The number set.
    """
    if num_threads < 1:
        num_threads = _cpus() if _is_worth_threads(algorithm) else 1
    if num_threads != torch.get_num_threads():
        torch.set_num_threads(num_threads)
    return num_threads


def _cpus() -> int:
    """Counts the CPUs given: those this process may keep busy, or fewer by `OMP_NUM_THREADS`, as a process on Ray is told."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return min(usable_cpus(), int(told)) if told.isdigit() and int(told) > 0 else usable_cpus()


def _is_worth_threads(algorithm: BaseAlgorithm) -> bool:
    if torch.device(algorithm.device).type != "cpu":
        return False
    policy = algorithm.policy
    convolves = isinstance(policy, nn.Module) and any(isinstance(module, nn.Conv2d) for module in policy.modules())
    return convolves or sum(parameter.numel() for parameter in parameters(algorithm)) >= MANY_WEIGHTS


def _attribute(algorithm: BaseAlgorithm, dotted: str) -> object:
    value: object = algorithm
    for name in dotted.split("."):
        value = getattr(value, name)
    return value
