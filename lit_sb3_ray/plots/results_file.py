"""Results as a file: a numpy archive without pickled objects, so that reading it runs nothing.

The array `index` holds JSON text: the format, the metric, whether tables show medians, and the keys by environment. For each
environment and key there are the arrays `<environment>|<key>|<name>`, named as rl_zoo3 names them: `timesteps`, `mean`,
`std_error`, `last_evals`, `std_error_last_eval` and `mean_per_eval` (evaluations x runs). Of these `timesteps` and
`mean_per_eval` are read back; the others come of them, and are there for whoever opens the file with numpy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.results import Results

SUFFIX = ".npz"
FORMAT = "lit_sb3_ray results 1"

_INDEX = "index"
_PICKLES = (".pkl", ".pickle")


def write_results(results: Results, path: Path) -> None:
    """Writes a results file.

    Args:
        results: The results.
        path: The file, whose name ends in `.npz`.

    Raises:
        OSError: It cannot be written.
    """
    index = {
        "format": FORMAT,
        "metric": results.metric,
        "median": results.median,
        "environments": {env: list(found) for env, found in results.environments.items()},
    }
    arrays: dict[str, Any] = {_INDEX: np.array(json.dumps(index))}
    for env, found in results.environments.items():
        for key, result in found.items():
            arrays |= {_name(env, key, name): value for name, value in _arrays(result).items()}
    np.savez_compressed(path, **arrays)


def read_results(name: str, flag: str) -> Results:
    """Reads a results file.

    Args:
        name: Its path, with or without `.npz`.
        flag: The flag it was given to, for the message.

    Raises:
        ConfigError: There is no such file, it is a pickle (rl_zoo3's), it is damaged, or none of these files.
    """
    path = _find(name, flag)
    with refusing(f"{flag} {path} is no results file of all-plots"), np.load(path, allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile) or _INDEX not in file.files:
            raise ConfigError(f"{flag} {path} is no results file of all-plots: it has no index")
        index = json.loads(str(file[_INDEX]))
        if index["format"] != FORMAT:
            raise ConfigError(f"{flag} {path} is of the format {index['format']!r}, and only {FORMAT!r} can be read")
        environments = {
            str(env): {str(key): _result(file, env, key) for key in keys} for env, keys in index["environments"].items()
        }
        return Results(str(index["metric"]), bool(index["median"]), environments)


def _find(name: str, flag: str) -> Path:
    path = Path(name)
    if not path.is_file() and path.suffix != SUFFIX:
        path = Path(f"{name}{SUFFIX}")
    pickles = [Path(name)] if Path(name).suffix in _PICKLES else [Path(f"{name}{suffix}") for suffix in _PICKLES]
    if Path(name).suffix in _PICKLES or (not path.is_file() and any(pickle.is_file() for pickle in pickles)):
        raise ConfigError(
            f"{flag} {pickles[0]} is a pickle, and reading one may run anything: make the file again from the runs, which "
            f"may be rl_zoo3's, with `lit-sb3-ray all-plots ... -o {pickles[0].with_suffix('')}`"
        )
    if not path.is_file():
        raise ConfigError(f"{flag} {name!r}: there is no such file; all-plots -o writes one")
    return path


def _arrays(result: Result) -> dict[str, Any]:
    return {
        "timesteps": result.timesteps,
        "mean": result.mean,
        "std_error": result.std_error,
        "last_evals": result.last_evals,
        "std_error_last_eval": np.array(result.std_error_last_eval),
        "mean_per_eval": result.mean_per_eval,
    }


def _result(file: Any, env: str, key: str) -> Result:
    timesteps, means = (np.asarray(file[_name(env, key, name)], np.float64) for name in ("timesteps", "mean_per_eval"))
    if timesteps.ndim != 1 or means.ndim != 2 or len(means) != len(timesteps) or not means.size:
        raise ValueError(f"{key} in {env} has timesteps of the shape {timesteps.shape} and means of {means.shape}")
    return Result(timesteps, means)


def _name(env: str, key: str, name: str) -> str:
    return f"{env}|{key}|{name}"
