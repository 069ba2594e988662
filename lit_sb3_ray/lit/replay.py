"""Replay buffers on disk: only the rows in use are written, and read back into the buffer that is already there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from lit_sb3_ray.errors import ConfigError

# Bound to the process that made the buffer.
LIVE = ("env", "device")


def used_bytes(buffer: BaseBuffer) -> int:
    """Size in bytes of the arrays' rows in use."""
    return sum(array.nbytes for value in _used(buffer).values() for array in _arrays(value))


def save_buffer(buffer: BaseBuffer, path: Path) -> None:
    """Writes a replay buffer's rows in use and its counters."""
    with path.open("wb") as file:
        pickle.dump(_used(buffer), file, protocol=pickle.HIGHEST_PROTOCOL)


def load_buffer(buffer: BaseBuffer, path: Path) -> None:
    """Fills a buffer with what `save_buffer` wrote.

    The episodes that were in progress are not continued, since their envs start anew: their last transition closes them.

    Raises:
        ConfigError: The file is of a buffer with other sizes.
    """
    with path.open("rb") as file:
        state: dict[str, Any] = pickle.load(file)
    if state["buffer_size"] != buffer.buffer_size or state["n_envs"] != buffer.n_envs:
        raise ConfigError(
            f"{path}: a buffer of {state['buffer_size']} rows and {state['n_envs']} envs cannot go on with "
            f"{buffer.buffer_size} rows and {buffer.n_envs} envs"
        )
    for name, value in state.items():
        live = getattr(buffer, name, None)
        if isinstance(value, dict) and isinstance(live, dict):
            for key, rows in value.items():
                live[key][: len(rows)] = rows
        elif isinstance(value, np.ndarray) and isinstance(live, np.ndarray) and live.shape[1:] == value.shape[1:]:
            live[: len(value)] = value
        else:
            setattr(buffer, name, value)
    _close_episodes(buffer)


def _used(buffer: BaseBuffer) -> dict[str, Any]:
    # A memory-optimised buffer keeps the newest next observation in the row after the last one.
    rows = buffer.buffer_size if buffer.full else min(buffer.pos + 1, buffer.buffer_size)

    def cut(value: Any) -> Any:
        if isinstance(value, dict) and value and all(isinstance(item, np.ndarray) for item in value.values()):
            return {key: item[:rows] for key, item in value.items()}
        return value[:rows] if isinstance(value, np.ndarray) and value.shape[:1] == (buffer.buffer_size,) else value

    return {name: cut(value) for name, value in vars(buffer).items() if name not in LIVE}


def _arrays(value: object) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, np.ndarray)]
    return [value] if isinstance(value, np.ndarray) else []


def _close_episodes(buffer: BaseBuffer) -> None:
    if isinstance(buffer, HerReplayBuffer):
        buffer.truncate_last_trajectory()
    elif getattr(buffer, "optimize_memory_usage", False) and (buffer.full or buffer.pos > 0):
        buffer.dones[(buffer.pos - 1) % buffer.buffer_size] = True  # type: ignore[attr-defined]
