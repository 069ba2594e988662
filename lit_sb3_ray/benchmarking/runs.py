"""The runs under a log folder, of this package or of rl_zoo3."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import split_run_folder
from lit_sb3_ray.experiment.run_folder import open_run, read_arguments


@dataclass(frozen=True)
class Run:
    """A run that may be played.

    Attributes:
        path: The run folder.
        algo: Its algorithm.
        env_id: Its environment; as the folder spells it where nothing else tells.
        problem: Why it cannot be played, where that is known beforehand.
    """

    path: Path
    algo: str
    env_id: str
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.algo} {self.path.name}"

    @property
    def number(self) -> int:
        """The run's number; 0 without one."""
        split = split_run_folder(self.path.name)
        return 0 if split is None else split[1]


def find_runs(folder: Path) -> list[Run]:
    """Lists the runs of a log folder: `<folder>/<algo>/<run>/`.

    Args:
        folder: The log folder.

    Returns:
        The runs by algorithm, environment and number; one whose settings are damaged or missing has a `problem`.

    Raises:
        ConfigError: The folder is not there, or holds no run.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}: name the one that runs were written to, such as logs")
    homes = [path for path in folder.iterdir() if path.is_dir()]
    runs = [run for home in homes for path in home.iterdir() if path.is_dir() and (run := _read(path)) is not None]
    if not runs:
        raise ConfigError(_no_runs(folder, homes))
    return sorted(runs, key=lambda run: (run.algo, run.env_id, run.number, run.path.name))


def _read(path: Path) -> Run | None:
    """Reads what a run is; None for a folder that is no run."""
    settings = [*path.glob("*/args.yml"), *path.glob("*/config.yml")]
    if not settings and not any(path.glob("*.zip")):
        return None
    algo = path.parent.name
    try:
        run = open_run(path)
        if (run.settings / "args.yml").exists():
            algo = str(read_arguments(run).get("algo") or algo)
    except ConfigError as error:
        split = split_run_folder(path.name)
        env_id = settings[0].parent.name if settings else path.name if split is None else split[0]
        return Run(path, algo, env_id, problem=str(error))
    return Run(path, algo, run.env_id)


def _no_runs(folder: Path, homes: list[Path]) -> str:
    if any(path.name.endswith(".yml") for home in homes for path in home.iterdir()):
        return f"{str(folder)!r} is a run folder: give the log folder instead, {str(folder.resolve().parent.parent)!r}"
    if any(_read(home) is not None for home in homes):
        return f"{str(folder)!r} is the folder of one algorithm: give the log folder instead, {str(folder.resolve().parent)!r}"
    return f"{str(folder)!r} holds no runs: they are looked for as {folder.name or '.'}/<algo>/<run>/"
