"""Evaluations of a run: its `evaluations.npz`, this package's or rl_zoo3's, read without unpickling anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import is_zipfile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.untrusted.archives import open_archive

Array = NDArray[np.float64]

TIMESTEPS = "timesteps"


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of one run.

    Attributes:
        timesteps: Env steps at each, rising, shape `(n_evaluations,)`.
        values: What each of its episodes came to, shape `(n_evaluations, n_episodes)`.
    """

    timesteps: Array
    values: Array

    def __len__(self) -> int:
        return len(self.timesteps)

    def cut(self, max_timesteps: float) -> Evaluations:
        """Leaves out what is later than so many env steps."""
        kept = int(np.searchsorted(self.timesteps, max_timesteps, side="right"))
        return Evaluations(self.timesteps[:kept], self.values[:kept])

    def resampled(self, timesteps: Array) -> Evaluations:
        """Takes, for each of other env steps, the evaluation nearest to it."""
        nearest = np.abs(self.timesteps[:, None] - timesteps[None, :]).argmin(axis=0)
        return Evaluations(timesteps, self.values[nearest])


@contextmanager
def open_arrays(path: Path) -> Iterator[NpzFile]:
    """Opens an archive of numpy's, and unpickles nothing in it.

    Args:
        path: The `.npz` file.

    Yields:
        Its arrays.

    Raises:
        ValueError: It is something else. numpy would speak of pickles, and of how to read them all the same.
        ConfigError: It would unpack to more than memory holds.
        OSError: It cannot be read.
    """
    if not is_zipfile(path):
        raise ValueError("it is no archive of numpy's")
    with open_archive(path):
        pass
    with np.load(path, allow_pickle=False) as file:
        yield file


def read_evaluations(run: Path, key: str = "results") -> Evaluations:
    """Reads the evaluations of a run.

    Args:
        run: The run folder.
        key: Which array of the file: `results` (returns), `ep_lengths`, or `successes` where the environment tells any.

    Returns:
        The evaluations; there is at least one.

    Raises:
        ConfigError: There is no such file or array, it is damaged, or it holds no evaluation.
    """
    path = run / "evaluations.npz"
    if not path.is_file():
        raise ConfigError(f"{run} has no evaluations.npz")
    with refusing(f"{path} is damaged"), open_arrays(path) as file:
        if key not in file.files:
            raise unknown("key", key, (name for name in file.files if name != TIMESTEPS), str(path))
        timesteps = np.asarray(file[TIMESTEPS], dtype=np.float64).reshape(-1)
        values = np.asarray(file[key], dtype=np.float64)
        if not len(timesteps):
            raise ConfigError(f"{path} holds no evaluation yet")
        if len(values) != len(timesteps) or not values.size:
            raise ValueError(f"it has {len(timesteps)} timesteps and {key} of the shape {values.shape}")
        if not (np.isfinite(timesteps).all() and (np.diff(timesteps) >= 0).all()):
            raise ValueError("its timesteps do not rise")
    return Evaluations(timesteps, values.reshape(len(timesteps), -1))
