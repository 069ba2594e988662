"""The device of each of several learners."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.learner import GPUS, Seat

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)


def device_of_each(manager: ExperimentManager) -> str:
    """Settles the device of each of several learners.

    Args:
        manager: The experiment.

    Returns:
        `cuda`, each having a GPU of its own then, or `cpu`.

    Raises:
        ConfigError: GPUs were asked for, and there are too few, or a certain one was named.
    """
    asked, devices = str(manager.device), manager.devices
    if asked not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device {asked} with --devices {devices}: each learner has its own; give cpu, cuda or auto")
    if asked == "cpu" or (asked == "auto" and not torch.cuda.is_available()):
        return "cpu"
    import ray

    from lit_sb3_ray.scale.connection import connect

    connect(manager.ray_settings)
    gpus = int(ray.cluster_resources().get("GPU", 0.0))  # type: ignore[no-untyped-call]
    if gpus >= devices and torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise ConfigError(f"--device cuda with --devices {devices}: each learner needs a GPU of its own, and Ray has {gpus}")
    logger.info("Ray has %d GPUs for %d learners: all are on the CPU", gpus, devices)
    return "cpu"


def threads_of_each(manager: ExperimentManager) -> int:
    """Threads, and so CPUs, of each of several learners: what was asked for, or one."""
    return max(1, manager.num_threads)


def visible_gpus() -> list[str]:
    """Ids of the GPUs that this process sees."""
    here = os.environ.get(GPUS)
    return here.split(",") if here else [str(index) for index in range(torch.cuda.device_count())]


def divide_gpus(seats: Sequence[Seat], here: str, visible: Sequence[str]) -> list[str]:
    """Gives each learner but the first a GPU of its own.

    Ray does not know which one the first learner has, the first that it sees, and may have given it away again.

    Args:
        seats: Where the others are, and what Ray has given them.
        here: The first one's node.
        visible: Ids of the GPUs that it sees.

    Returns:
        The id of each.

    Raises:
        ConfigError: There are too few on its node.
    """
    own = visible[0]
    taken = {gpu for seat in seats if seat.home.node == here for gpu in seat.gpus}
    free = [gpu for gpu in visible if gpu != own and gpu not in taken]
    divided: list[str] = []
    for seat in seats:
        gpu = seat.gpus[0]
        if seat.home.node == here and gpu == own:
            if not free:
                raise ConfigError(f"--devices {len(seats) + 1}: this node has no GPU left for the first learner, this process")
            gpu = free.pop(0)
        divided.append(gpu)
    return divided
