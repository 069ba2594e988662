"""Monitor files: one row per finished episode, written by the process that learns, wherever the environments run."""

from __future__ import annotations

import csv
import json
import logging
import os
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)

SUFFIX = ".monitor.csv"


@dataclass(frozen=True)
class MonitorFiles:
    """Where the episodes of a vectorised environment are written.

    Attributes:
        folder: The run folder; environment `i` writes `<i>.monitor.csv` there.
        offsets: None starts new files. The value of `EpisodeRecorder.offsets` at a checkpoint continues the files from
            there: what was written later is cut off. A file that is gone is started anew.
        learners: How many learners have as many environments each, and tell this process of their episodes.
    """

    folder: Path
    offsets: Mapping[str, int] | None = None
    learners: int = 1


class EpisodeRecorder(VecEnv):
    """Stands in for a vectorised environment and writes down each episode that ends in it.

    It takes the place of the innermost environment instead of wrapping it: SB3 copies normalisation statistics between
    training and evaluation environments only if both have the same number of `VecEnvWrapper`s. Everything but `step_wait`
    and `close` is the environment's own; observations, rewards, dones and infos pass through untouched.

    A row has the columns of SB3's Monitor: return `r`, length `l`, seconds `t` since the file was started (by the clock
    of this process, so that a resumed run goes on in time), then the monitor's keywords. It is flushed at once.

    Attributes:
        paths: The files, by index of environment.
    """

    def __init__(
        self,
        venv: VecEnv,
        folder: Path,
        env_id: str,
        keywords: Iterable[str] = (),
        offsets: Mapping[str, int] | None = None,
        learners: int = 1,
    ) -> None:
        """Opens the files.

        Args:
            venv: The vectorised environment, whose environments have a Monitor each.
            folder: Where the files go; created if need be.
            env_id: Id for the files' first line.
            keywords: Further columns, in order: the monitor's `reset_keywords` and `info_keywords`.
            offsets: See `MonitorFiles`.
            learners: See `MonitorFiles`; the files after this process's own are the other learners'.

        Raises:
            ConfigError: The folder cannot be written, or a file to be continued is no monitor file.
        """
        # VecEnv.__init__ is left out: it would give this object a state of its own beside the environment's.
        self._recorded = venv
        self.paths = tuple(folder / f"{index}{SUFFIX}" for index in range(venv.num_envs * learners))
        header = {"t_start": time.time(), "env_id": env_id}
        columns = ("r", "l", "t", *keywords)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if offsets is not None:
                truncate_monitor_files(folder, offsets)
            self._logs = [
                _EpisodeLog(path, header, columns, append=offsets is not None and path.exists()) for path in self.paths
            ]
        except OSError as error:
            raise ConfigError(f"monitor files cannot be written to {str(folder)!r}: {error.strerror or error}") from error

    def offsets(self) -> dict[str, int]:
        """Tells how long each file is now, for a checkpoint.

        Returns:
            Bytes by file name, as `MonitorFiles.offsets` takes them.
        """
        return {path.name: path.stat().st_size for path in self.paths}

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for the step and records the episodes it ended."""
        try:
            result = self._recorded.step_wait()
        except Exception as error:  # Raised on as it is, whatever it is.
            _note_index(error)
            raise
        if result[2].any():
            infos = result[3]
            for index in np.flatnonzero(result[2]):
                # A wrapper may end an episode early, e.g. at the loss of a life: the monitor's goes on.
                episode = infos[index].get("episode")
                if episode is not None:
                    self._logs[index].write(episode)
        return result

    def record(self, index: int, episode: Mapping[str, Any]) -> None:
        """Writes an episode down that an environment has played by itself.

        Args:
            index: Index of the environment.
            episode: What its Monitor tells, `info["episode"]`.
        """
        self._logs[index].write(episode)

    def step_async(self, actions: np.ndarray) -> None:
        """Hands the actions, shape `(n_envs, *action_shape)`, to the environment."""
        self._recorded.step_async(actions)

    def reset(self) -> VecEnvObs:
        """Resets all environments."""
        try:
            return self._recorded.reset()
        except Exception as error:  # Raised on as it is, whatever it is.
            _note_index(error)
            raise

    def close(self) -> None:
        """Closes the files, then the environment."""
        for log in self._logs:
            log.close()
        self._recorded.close()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seeds for the next reset."""
        return self._recorded.seed(seed)

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Sets the options for the next reset."""
        self._recorded.set_options(options)

    def render(self, mode: str | None = None) -> np.ndarray | None:
        """Renders the environments."""
        return self._recorded.render(mode)

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Returns one image per environment."""
        return self._recorded.get_images()

    def has_attr(self, attr_name: str) -> bool:
        """Tells whether all environments have an attribute."""
        return self._recorded.has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Reads an attribute of the environments."""
        return self._recorded.get_attr(attr_name, indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of the environments."""
        self._recorded.set_attr(attr_name, value, indices)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of the environments."""
        return self._recorded.env_method(method_name, *method_args, indices=indices, **method_kwargs)

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Tells which environments have a wrapper."""
        return self._recorded.env_is_wrapped(wrapper_class, indices)

    @property
    def unwrapped(self) -> VecEnv:
        """The environment that is recorded."""
        return self._recorded.unwrapped

    def __getattr__(self, name: str) -> Any:
        """Reads everything else, spaces and `num_envs` included, from the environment."""
        if name == "_recorded":
            raise AttributeError(name)
        return getattr(self._recorded, name)


def _note_index(error: Exception) -> None:
    """Notes on an error which environment it comes from, where one in this process raised it (see SB3's DummyVecEnv)."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if isinstance(frame.f_locals.get("self"), VecEnv) and "env_idx" in frame.f_locals:
            error.add_note(f"in env {frame.f_locals['env_idx']}")
            return


class _EpisodeLog:
    """One open monitor file."""

    def __init__(self, path: Path, header: Mapping[str, Any], columns: Sequence[str], *, append: bool) -> None:
        if append:
            header, columns = _read_header(path)
        self._t_start = float(header["t_start"])
        self._file: IO[str] = path.open("a" if append else "w", newline="\n", encoding="utf-8")
        self._rows = csv.DictWriter(self._file, fieldnames=columns, extrasaction="ignore")
        if not append:
            self._file.write(f"#{json.dumps(header)}\n")
            self._rows.writeheader()
            self._file.flush()

    def write(self, episode: Mapping[str, Any]) -> None:
        self._rows.writerow({**episode, "t": round(time.time() - self._t_start, 6)})
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def truncate_monitor_files(folder: Path, offsets: Mapping[str, int]) -> None:
    """Cuts all monitor files of a folder back to where they were at a checkpoint.

    Files that did not exist then are removed, so no episode is counted twice, even when the number of environments
    changed since. A file that has become shorter keeps its whole rows.

    Args:
        folder: The run folder.
        offsets: Bytes by file name, from `EpisodeRecorder.offsets`.

    Raises:
        OSError: The folder cannot be written.
    """
    for path in folder.glob(f"*{SUFFIX}"):
        if path.name not in offsets:
            path.unlink()
    for name, size in offsets.items():
        path = folder / name
        content = path.read_bytes() if path.exists() else b""
        if len(content) < size:
            logger.warning("%s has lost episodes: %d bytes, %d at the checkpoint", path, len(content), size)
            size = content.rfind(b"\n") + 1
        if content.count(b"\n", 0, size) >= 2:
            os.truncate(path, size)
        else:
            path.unlink(missing_ok=True)


def find_recorder(env: VecEnv) -> EpisodeRecorder | None:
    """Finds the recorder at the bottom of a stack of `VecEnvWrapper`s, if there is one."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env if isinstance(env, EpisodeRecorder) else None


def _read_header(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Reads a monitor file's first two lines: its header and its columns."""
    with path.open(newline="", encoding="utf-8") as file:
        first, second = file.readline(), file.readline()
    try:
        header = json.loads(first.removeprefix("#"))
        header["t_start"] = float(header["t_start"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no monitor file: its first line has no t_start") from error
    return header, next(csv.reader([second]))
