"""The results files of rl_zoo3's all_plots: pickles, read with the list of classes, so that reading them runs nothing.

Such a file holds, for each environment and key (`PPO-logs`), arrays of the names that this package's results have, too, and
the table as text under `results_table`. It does not tell which array of `evaluations.npz` they come of: `results` is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.results import Results
from lit_sb3_ray.untrusted.pickles import read_pickle

SUFFIXES = (".pkl", ".pickle")

_TABLE = "results_table"
_OLDEST_MARKED_PROTOCOL = b"\x80"


def is_pickle(path: Path) -> bool:
    """Whether a file is a pickle, by its name or its first byte."""
    with path.open("rb") as file:
        return path.suffix in SUFFIXES or file.read(1) == _OLDEST_MARKED_PROTOCOL


def read_peer_results(path: Path, flag: str) -> Results:
    """Reads a results file of rl_zoo3.

    Args:
        path: The file.
        flag: The flag it was given to, for the message.

    Raises:
        ConfigError: It is damaged, holds something else than such results, or anything that would be run.
    """
    where = f"{flag} {path}"
    with refusing(f"{where} is no results file of rl_zoo3's all_plots"):
        remedy = f"make the file again from the runs, by `lit-sb3-ray all-plots ... -o {path.with_suffix('')}`"
        content = read_pickle(path.read_bytes(), where, remedy)
        environments = {
            _text(env): {_text(key): result_of(found, f"{key} in {env}") for key, found in _mapping(keys).items()}
            for env, keys in _mapping(content).items()
            if env != _TABLE
        }
        if not any(environments.values()):
            raise ValueError("there is no result in it")
    return Results("results", False, environments)


def result_of(arrays: Any, name: str) -> Result:
    """Makes a result of its arrays, of which `timesteps` and `mean_per_eval` are looked at.

    Args:
        arrays: The arrays by name.
        name: What they are of, for the message.

    Raises:
        ValueError: They are of shapes that do not suit each other, or no numbers.
        KeyError: One of them is missing.
    """
    timesteps, means = (np.asarray(arrays[what], np.float64) for what in ("timesteps", "mean_per_eval"))
    if timesteps.ndim != 1 or means.ndim != 2 or len(means) != len(timesteps) or not means.size:
        raise ValueError(f"{name} has timesteps of the shape {timesteps.shape} and means of {means.shape}")
    return Result(timesteps, means)


def _mapping(found: Any) -> Mapping[Any, Any]:
    if not isinstance(found, Mapping):
        raise TypeError(f"a {type(found).__name__} stands where results by name are expected")
    return found


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} stands where a name is expected")
    return name
