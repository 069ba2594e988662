"""Replay buffers on disk: only the rows in use are written, and read back into the buffer that is already there."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from lit_sb3_ray.errors import ConfigError

# Bound to the process that made the buffer.
LIVE = ("env", "device")
HER_EPISODES = ("ep_start", "ep_length", "_current_ep_start")


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
        if _holds_arrays(value) and isinstance(live, dict):
            for key, rows in value.items():
                live[key][: len(rows)] = rows
        elif isinstance(value, np.ndarray) and isinstance(live, np.ndarray) and live.shape[1:] == value.shape[1:]:
            live[: len(value)] = value
        else:
            setattr(buffer, name, value)
    close_episodes(buffer)


def buffer_position(buffer: BaseBuffer) -> dict[str, Any]:
    """Copies what tells where a buffer's next transition goes and, for HER, where episodes begin and end."""
    names = ("pos", "full", *(HER_EPISODES if isinstance(buffer, HerReplayBuffer) else ()))
    return {name: copy.copy(getattr(buffer, name)) for name in names}


def move_back(buffer: BaseBuffer, position: Mapping[str, Any]) -> None:
    """Takes back the transitions added since `buffer_position`; a full buffer keeps them, having lost older ones to them."""
    if not buffer.full:
        vars(buffer).update({name: copy.copy(value) for name, value in position.items()})


def _used(buffer: BaseBuffer) -> dict[str, Any]:
    # A memory-optimised buffer keeps the newest next observation in the row after the last one.
    rows = buffer.buffer_size if buffer.full else min(buffer.pos + 1, buffer.buffer_size)

    def cut(value: Any) -> Any:
        if _holds_arrays(value):
            return {key: item[:rows] for key, item in value.items()}
        return value[:rows] if isinstance(value, np.ndarray) and value.shape[:1] == (buffer.buffer_size,) else value

    return {name: cut(value) for name, value in vars(buffer).items() if name not in LIVE}


def _holds_arrays(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(item, np.ndarray) for item in value.values())


def _arrays(value: object) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, np.ndarray)]
    return [value] if isinstance(value, np.ndarray) else []


def close_episodes(buffer: BaseBuffer) -> None:
    """Ends the episodes in progress with their last transitions: what is added next belongs to other episodes."""
    if isinstance(buffer, HerReplayBuffer):
        with warnings.catch_warnings():
            # It warns of what is meant here.
            warnings.simplefilter("ignore", UserWarning)
            buffer.truncate_last_trajectory()
    elif isinstance(buffer, ReplayBuffer) and (buffer.full or buffer.pos > 0):
        last = (buffer.pos - 1) % buffer.buffer_size
        if buffer.optimize_memory_usage:
            # Its next observation is about to be overwritten, so that nothing may be learnt from it.
            buffer.dones[last] = True
        else:
            # Returns over several steps end here.
            buffer.timeouts[last] = np.logical_or(buffer.timeouts[last], np.logical_not(buffer.dones[last]))
