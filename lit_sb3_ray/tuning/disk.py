"""The disk that a study's checkpoints will need."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

# A new checkpoint is there before the old one goes.
COPIES = 2
# SB3's default.
BUFFER_SIZE = 1_000_000
# Reward, end and time limit of a row, in bytes.
REST_OF_ROW = 12
# Networks, optimizers and statistics; a large convolutional one has so much.
MODEL_BYTES = 50 * 2**20


def check_disk(manager: ExperimentManager, path: str, at_once: int) -> None:
    """Estimates what the checkpoints of trials will need and compares it with what is free.

    Args:
        manager: The study's manager.
        path: Where checkpoints go; a URL is not looked at.
        at_once: Trials at the same time; those that are over keep no checkpoint.

    Raises:
        ConfigError: There is less; the message has the numbers.
    """
    if "://" in path or manager.study_options.checkpoint_every == math.inf:
        return
    needed = COPIES * at_once * manager.seeds_per_trial * checkpoint_bytes(manager)
    free = shutil.disk_usage(_existing(Path(path))).free
    if needed > free:
        raise ConfigError(
            f"checkpoints of {at_once} trials may need {needed / 2**30:.1f} GiB and {path} has {free / 2**30:.1f} GiB free: "
            "lower --n-jobs or buffer_size, or give another --storage-path"
        )


def checkpoint_bytes(manager: ExperimentManager) -> int:
    """Estimates the size of one checkpoint: the rows of the replay buffer that a trial can fill, and the networks."""
    resolved = manager.hyperparams
    kwargs: dict[str, Any] = resolved.model_kwargs
    if not hasattr(resolved.algo_class, "load_replay_buffer"):
        return MODEL_BYTES
    rows = min(int(kwargs.get("buffer_size", BUFFER_SIZE)), resolved.n_timesteps)
    env = manager.create_envs(1, eval_env=True)
    try:
        observation, action = _bytes_of(env.observation_space), _bytes_of(env.action_space)
    finally:
        env.close()
    observations = 1 if kwargs.get("optimize_memory_usage") else 2
    return MODEL_BYTES + rows * (observations * observation + action + REST_OF_ROW)


def _bytes_of(space: spaces.Space[Any]) -> int:
    return int(sum(part.nbytes for part in _arrays(space.sample())))


def _arrays(sample: Any) -> list[Any]:
    if isinstance(sample, dict):
        return [part for value in sample.values() for part in _arrays(value)]
    return [np.asarray(sample)]


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
