"""Which runs are meant: folders, algorithms, environments by exact names, and the nearest one where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import RunName, algo_folder_name, env_folder_name, list_runs, split_run_folder

_SHOWN = 8


def algorithm_folder(folder: Path, algo: str) -> Path | None:
    """Finds the folder of an algorithm's runs.

    Args:
        folder: The log folder, such as `logs`.
        algo: The algorithm's name as given; capitals stand for small letters where there is no such folder.

    Returns:
        The folder; None where there is none.
    """
    for name in dict.fromkeys((algo_folder_name(algo), algo_folder_name(algo).lower())):
        if (folder / name).is_dir():
            return folder / name
    return None


def check_runs(folders: Sequence[Path], algos: Sequence[str], env_ids: Sequence[str]) -> None:
    """Checks that there is something of everything that is asked for.

    Args:
        folders: Log folders.
        algos: Algorithms.
        env_ids: Environments.

    Raises:
        ConfigError: A folder is not there, none of them has runs of an algorithm, or none of the algorithms has runs of an
            environment; the nearest name there is, is told.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"there is no folder {str(folder)!r}: name the one that runs were written to, such as -f logs")
    homes = []
    for algo in algos:
        found = [home for folder in folders if (home := algorithm_folder(folder, algo)) is not None]
        if not found:
            known = [path.name for folder in folders for path in folder.iterdir() if _environments(path)]
            raise ConfigError(f"no runs of {algo!r} in {_spelt(folders)}: {_hint(algo, known)}")
        homes += found
    for env_id in env_ids:
        if not any(list_runs(home, env_id) for home in homes):
            known = [name for home in homes for name in _environments(home)]
            raise ConfigError(f"no run on {env_id!r} in {_spelt(homes)}: {_hint(env_folder_name(env_id), known)}")


def find_runs(folder: Path, algo: str, env_id: str) -> list[RunName]:
    """Lists the runs of one algorithm in one environment, by number.

    Args:
        folder: The log folder.
        algo: The algorithm.
        env_id: The environment's id, exactly: `MountainCar-v0` has no part in `MountainCarContinuous-v0`.
    """
    home = algorithm_folder(folder, algo)
    return [] if home is None else list_runs(home, env_id)


def nearest(kind: str, name: str, known: Iterable[str], where: str) -> ConfigError:
    """Builds the error for a name that is not there.

    Args:
        kind: What the name stands for.
        name: The name as given.
        known: The names there are.
        where: The flag or the file.
    """
    return ConfigError(f"{where}: there is no {kind} {name!r}: {_hint(name, known)}")


def nothing_to(do: str, problems: Sequence[str]) -> ConfigError:
    """Builds the error for runs none of which can be shown.

    Args:
        do: What cannot be done with any of them.
        problems: Why not, a line a run; at least one.
    """
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return ConfigError(f"there is nothing to {do}: {problems[0]}{more}")


def _environments(home: Path) -> list[str]:
    """The environments, as folders spell them, of which an algorithm's folder holds runs."""
    if not home.is_dir():
        return []
    splits = (split_run_folder(path.name) for path in home.iterdir() if path.is_dir())
    return sorted({split[0] for split in splits if split is not None})


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(dict.fromkeys(known))
    if not names:
        return "there are none at all"
    # A part of a name, which rl_zoo3 takes for the whole, is nearer than difflib thinks.
    near = [other for other in names if name and name.lower() in other.lower()]
    near = near or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(map(repr, near[:3]))}?"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}"


def _spelt(folders: Sequence[Path]) -> str:
    return ", ".join(repr(str(folder)) for folder in dict.fromkeys(folders))
