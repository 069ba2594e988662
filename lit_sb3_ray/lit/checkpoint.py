"""Checkpoints: a folder with everything needed to go on.

    <folder>/
      model.zip           the algorithm as SB3 saves it: networks, optimizers, counters, schedules, noise
      vecnormalize.pkl    running statistics, when there are any
      replay_buffer.pkl   rows in use, when there is a buffer
      state.json          random generators, callbacks, the caller's own entries; written last

A checkpoint is written under a temporary name and renamed, so that a crash at any moment leaves the one before whole.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.save_util import load_from_zip_file, recursive_setattr
from stable_baselines3.common.vec_env import VecNormalize

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.lit.replay import load_buffer, save_buffer, used_bytes
from lit_sb3_ray.lit.state import (
    PLACEMENT,
    callback_states,
    own_attributes,
    pending_metrics,
    rng_states,
    set_callback_states,
    set_normalize_statistics,
    set_pending_metrics,
    set_rng_states,
)

logger = logging.getLogger(__name__)

FORMAT = 1
MODEL, STATISTICS, BUFFER, STATE = "model.zip", "vecnormalize.pkl", "replay_buffer.pkl", "state.json"


class Training(Protocol):
    """A training in progress: a `Session`, or whatever else knows these three.

    Attributes:
        iteration: Iterations done.
    """

    iteration: int

    @property
    def algorithm(self) -> BaseAlgorithm:
        """The algorithm being trained."""

    @property
    def callback(self) -> BaseCallback:
        """The algorithm's callbacks, as one."""


def save_checkpoint(
    folder: Path,
    session: Training,
    extra: dict[str, Any],
    buffer_limit: float | None = None,
    files: Iterable[Path] = (),
) -> Path:
    """Writes a checkpoint of a session that stands at an iteration boundary.

    Args:
        folder: The checkpoint's final name; what stands there is replaced.
        session: The session to save.
        extra: Further JSON values to keep.
        buffer_limit: Largest replay buffer to write, in GiB of rows in use; None for any size.
        files: Further files to keep, under their own names; one that is not there is left out.

    Returns:
        The folder.
    """
    algorithm = session.algorithm
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    algorithm.save(partial / MODEL)
    normalize = algorithm.get_vec_normalize_env()
    if normalize is not None:
        normalize.save(str(partial / STATISTICS))
    buffer = getattr(algorithm, "replay_buffer", None)
    if buffer is not None:
        if buffer_limit is None or used_bytes(buffer) <= buffer_limit * 2**30:
            save_buffer(buffer, partial / BUFFER)
        else:
            size = used_bytes(buffer) / 2**30
            logger.warning("checkpoint %s is without its replay buffer: %.1f GiB, limit %.1f", folder.name, size, buffer_limit)
    state = {
        "format": FORMAT,
        "num_timesteps": algorithm.num_timesteps,
        "iteration": session.iteration,
        "rng": rng_states(),
        "callbacks": callback_states(session.callback),
        "metrics": pending_metrics(algorithm),
        "extra": extra,
    }
    for file in files:
        link_or_copy(file, partial / file.name)
    (partial / STATE).write_text(json.dumps(state))
    for path in partial.iterdir():
        sync(path)
    replaced = folder.with_name(f".{folder.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        folder.rename(replaced)
    partial.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)
    sync(folder.parent)
    return folder


def read_state(folder: Path) -> dict[str, Any]:
    """Reads a checkpoint's `state.json`.

    Raises:
        ConfigError: The folder is no checkpoint, or of another format.
    """
    try:
        state: Any = json.loads((folder / STATE).read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} is no checkpoint: {error}") from error
    if not isinstance(state, dict):
        raise ConfigError(f"{folder} is no checkpoint: {STATE} holds no entries")
    if state.get("format") != FORMAT:
        raise ConfigError(f"{folder} has checkpoint format {state.get('format')}, this version reads {FORMAT}")
    return dict(state)


def restore_algorithm(folder: Path, algorithm: BaseAlgorithm) -> None:
    """Puts a checkpoint's networks, optimizers, counters, statistics and buffer into an algorithm made alike.

    Raises:
        ConfigError: The checkpoint is of another kind of algorithm, or its files cannot be read.
    """
    if isinstance(algorithm, BaseAlgorithm):
        _restore_in_place(folder, algorithm)
    else:
        _restore_through_load(folder, algorithm)
    normalize = algorithm.get_vec_normalize_env()
    if normalize is not None and (folder / STATISTICS).exists():
        with refusing(f"{folder / STATISTICS} cannot be read"):
            set_normalize_statistics(algorithm, VecNormalize.load(str(folder / STATISTICS), normalize.venv))
    buffer = getattr(algorithm, "replay_buffer", None)
    if buffer is not None and (folder / BUFFER).exists():
        with refusing(f"{folder / BUFFER} cannot be read"):
            load_buffer(buffer, folder / BUFFER)
    elif buffer is not None:
        logger.warning("checkpoint %s has no replay buffer: training goes on with an empty one", folder)


def _restore_in_place(folder: Path, algorithm: BaseAlgorithm) -> None:
    with refusing(f"{folder / MODEL} cannot be read"):
        data, parameters, variables = load_from_zip_file(folder / MODEL, device=algorithm.device)
    assert data is not None
    assert parameters is not None
    # What is here but not the algorithm's own is the network's; what is not here yet arises in training.
    foreign = algorithm.__dict__.keys() - own_attributes(algorithm).keys()
    algorithm.__dict__.update({name: value for name, value in data.items() if name not in foreign and name not in PLACEMENT})
    algorithm._last_obs = None
    with refusing(f"{folder / MODEL} does not fit the run's hyperparameters and environment"):
        algorithm.set_parameters(parameters, exact_match=True, device=algorithm.device)
    for name, value in (variables or {}).items():
        if value is not None:
            recursive_setattr(algorithm, f"{name}.data", value.data)


def _restore_through_load(folder: Path, algorithm: Any) -> None:
    """For a class that shares SB3's interface but not its base class, and so has parts that only its own `load` knows."""
    with refusing(f"{folder / MODEL} cannot be loaded as {type(algorithm).__name__}"):
        loaded = type(algorithm).load(folder / MODEL, env=algorithm.get_env(), device=algorithm.device)
    loaded.set_logger(algorithm.logger)
    vars(algorithm).update(vars(loaded))


def restore_session(folder: Path, session: Training) -> dict[str, Any]:
    """Puts a checkpoint's iteration count, callbacks and random generators back; the last thing before the first step.

    Returns:
        The entries given to `save_checkpoint` as `extra`.
    """
    state = read_state(folder)
    session.iteration = state["iteration"]
    set_callback_states(session.callback, state["callbacks"])
    set_pending_metrics(session.algorithm, state["metrics"])
    set_rng_states(state["rng"])
    extra: dict[str, Any] = state["extra"]
    return extra


def link_or_copy(source: Path, target: Path) -> None:
    """Gives a file a second name, or copies it where the file system has no hard links; nothing when there is no source.

    The two stay apart as long as whoever writes them renames whole files into place.
    """
    if not source.exists():
        return
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def sync(path: Path) -> None:
    """Asks the system to put a file or a folder's entries on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
