"""What a sweep has been asked for, over all its starts, as its folder keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.tuning.sweeps.combination import Combination

if TYPE_CHECKING:
    from lit_sb3_ray.tuning.sweeps.sweep import Sweep

RECORD = "sweep.yml"
BINDING = (
    *("config", "env_kwargs", "eval_env_kwargs", "eval_freq", "fast", "gym_packages", "hyperparams", "n_envs"),
    *("n_eval_envs", "n_eval_episodes", "n_timesteps", "precision", "trained_agent"),
)
"""Settings that all runs of a sweep have in common, whenever they are started."""


def read_record(folder: Path) -> dict[str, Any] | None:
    """Reads what a sweep has been asked for so far.

    Returns:
        `algos`, `envs`, `seeds` (their order gives the run folders' numbers) and `settings`; None when there is no sweep.

    Raises:
        ConfigError: The file is none of ours.
    """
    path = folder / RECORD
    if not path.exists():
        return None
    record = read_yaml(path, run_file=True)
    if not isinstance(record, dict) or not {"algos", "envs", "seeds", "settings"} <= record.keys():
        raise ConfigError(f"{path} is no record of a sweep")
    return record


def take(folder: Path, resume: bool, stack: ExitStack) -> dict[str, Any] | None:
    """Takes hold of a sweep that is there already, and reads what it has been asked for; None when there is none."""
    if read_record(folder) is None:
        return None
    if not resume:
        raise ConfigError(f"there is a sweep in {str(folder)!r} already: go on with it by --resume, or give another --name")
    stack.callback(RunLock(folder).release)
    return read_record(folder)


def begin(folder: Path, stack: ExitStack) -> None:
    """Makes the folder of a new sweep, and takes hold of it."""
    folder.mkdir(parents=True, exist_ok=True)
    stack.callback(RunLock(folder).release)
    if read_record(folder) is not None:
        raise ConfigError(
            f"another sweep has just begun in {str(folder)!r}: go on with it by --resume, or give another --name"
        )


def extend(known: Mapping[str, Any] | None, sweep: Sweep, settings: Mapping[str, Any], seeds: Iterable[int]) -> dict[str, Any]:
    """What the sweep has been asked for, this time included.

    Raises:
        ConfigError: The settings contradict those of the runs that are there.
    """
    mine = {name: to_plain(settings[name]) for name in BINDING if settings.get(name) is not None}
    if "config" in mine:
        mine["config"] = _from_inside(sweep.folder, mine["config"])
    earlier: Mapping[str, Any] = known or {"algos": (), "envs": (), "settings": mine}
    for name in BINDING:
        before, now = earlier["settings"].get(name), mine.get(name)
        if before != now:
            raise ConfigError(
                f"{name}: the sweep in {str(sweep.folder)!r} has {before!r}, not {now!r}: leave it as it was, or give another "
                "--name"
            )
    return {
        "algos": list(dict.fromkeys([*earlier["algos"], *sweep.algos])),
        "envs": list(dict.fromkeys([*earlier["envs"], *sweep.envs])),
        "seeds": list(seeds),
        "settings": mine,
    }


def _from_inside(folder: Path, config: str) -> str:
    """A hyperparameter file that lies in the sweep's folder, as seen from there, so that the folder may be moved."""
    path, home = Path(config).absolute(), folder.absolute()
    return str(path.relative_to(home)) if path.is_relative_to(home) else config


def recorded(folder: Path, record: Mapping[str, Any], asked: Sequence[Combination]) -> list[Combination]:
    """The combinations asked for now, and those of earlier starts whose run folders are there."""
    numbered = [(seed, number) for number, seed in enumerate(record["seeds"], start=1)]
    every = [Combination(algo, env, *each) for algo in record["algos"] for env in record["envs"] for each in numbered]
    return [each for each in every if each in asked or each.run(folder).path.exists()]
