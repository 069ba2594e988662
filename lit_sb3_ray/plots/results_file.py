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
from lit_sb3_ray.plots.evaluations import open_arrays
from lit_sb3_ray.plots.peer_results import SUFFIXES as PICKLES
from lit_sb3_ray.plots.peer_results import is_pickle, read_peer_results, result_of
from lit_sb3_ray.plots.results import Results

SUFFIX = ".npz"
FORMAT = "lit_sb3_ray results 1"

_INDEX = "index"


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
    """Reads a results file, this package's or rl_zoo3's.

    Args:
        name: Its path, with or without `.npz` or `.pkl`.
        flag: The flag it was given to, for the message.

    Raises:
        ConfigError: There is no such file, it is damaged, or none of these files; or a pickle that would run something.
    """
    path = _find(name, flag)
    with refusing(f"{flag} {path} cannot be read"):
        peers = is_pickle(path)
    return read_peer_results(path, flag) if peers else _read(path, flag)


def _read(path: Path, flag: str) -> Results:
    with refusing(f"{flag} {path} is no results file of all-plots"), open_arrays(path) as file:
        if _INDEX not in file.files:
            raise ConfigError(f"{flag} {path} is no results file of all-plots: it has no index")
        index = json.loads(str(file[_INDEX]))
        if index["format"] != FORMAT:
            raise ConfigError(f"{flag} {path} is of the format {index['format']!r}, and only {FORMAT!r} can be read")
        environments = {
            str(env): {str(key): _result(file, env, key) for key in keys} for env, keys in index["environments"].items()
        }
        return Results(str(index["metric"]), bool(index["median"]), environments)


def _find(name: str, flag: str) -> Path:
    for path in (Path(name), *(Path(f"{name}{suffix}") for suffix in (SUFFIX, *PICKLES))):
        if path.is_file():
            return path
    if name and Path(name).is_dir():
        raise ConfigError(f"{flag} {name!r} is a folder: name a file that all-plots -o has written")
    raise ConfigError(f"{flag} {name!r}: there is no such file; all-plots -o writes one")


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
    return result_of({name: file[_name(env, key, name)] for name in ("timesteps", "mean_per_eval")}, f"{key} in {env}")


def _name(env: str, key: str, name: str) -> str:
    return f"{env}|{key}|{name}"
