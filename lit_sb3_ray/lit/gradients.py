"""Averaging gradients over learners, between an algorithm's own `backward()` and its own clipping and step."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import recursive_getattr
from torch import nn

from lit_sb3_ray.lit.exchange import Exchange


class GradientAverage:
    """Makes the gradients of every `backward()` the mean over all learners, for as long as it is entered.

    A hook notes each weight that gets a gradient; the first one asks torch to call back at the end of the pass, where all
    noted gradients go through one sum. All learners must make the same passes. What a pass adds to a gradient that
    was not dropped before is averaged as well: the mean of what all hold alike is that itself.

    Attributes:
        weights: What is learnt, in an order that is the same in all learners.
    """

    def __init__(self, algorithm: BaseAlgorithm, exchange: Exchange) -> None:
        """Hangs the hooks on the weights of all networks and on an algorithm's loose ones.

        Args:
            algorithm: The algorithm; it gets no further weights.
            exchange: The way to the other learners.
        """
        self._exchange = exchange
        self.weights = learnt(algorithm)
        self._noted: set[int] = set()
        self._active = False
        self._hooks = [_hung(weight, self._noting(place)) for place, weight in enumerate(self.weights)]

    @contextmanager
    def averaging(self) -> Iterator[None]:
        """Averages while it is entered; a pass outside is the learner's own business."""
        self._active = True
        try:
            yield
        finally:
            self._active = False
            self._noted.clear()

    def checksum(self) -> float:
        """A number that differs where weights do."""
        total = 0
        for weight in self.weights:
            total = zlib.crc32(weight.detach().cpu().contiguous().numpy().tobytes(), total)
        return float(total)

    def remove(self) -> None:
        """Takes the hooks away."""
        for hook in self._hooks:
            hook.remove()

    def _noting(self, place: int) -> Any:
        def note(weight: torch.Tensor) -> None:
            if not self._active:
                return
            if not self._noted:
                engine: Any = torch.autograd.Variable._execution_engine
                engine.queue_callback(self._average)
            self._noted.add(place)

        return note

    def _average(self) -> None:
        """Called at the end of a pass: one sum for all weights of one kind, and they are nearly always of one."""
        noted = [self.weights[place] for place in sorted(self._noted)]
        self._noted.clear()
        kinds: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = defaultdict(list)
        for weight in noted:
            assert weight.grad is not None, "a hook is called for what has a gradient"
            kinds[weight.grad.dtype, weight.grad.device].append(weight.grad)
        for gradients in kinds.values():
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            self._exchange.average_gradients(flat)
            parts = torch.split(flat, [gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))


def _hung(weight: Any, hook: Any) -> Any:
    """Hangs a hook on a weight, to be called when it has got its gradient; what takes it away again."""
    return weight.register_post_accumulate_grad_hook(hook)


def learnt(algorithm: BaseAlgorithm) -> list[torch.Tensor]:
    """The weights that an algorithm learns: its policy's, and loose ones such as SAC's entropy coefficient."""
    policy = algorithm.policy
    loose = [recursive_getattr(algorithm, name) for name in algorithm._get_torch_save_params()[1]]
    every: list[Any] = [*nn.Module.parameters(policy), *loose]
    return [weight for weight in every if isinstance(weight, torch.Tensor) and weight.requires_grad and weight.is_leaf]
