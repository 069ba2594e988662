"""One run of a sweep: which algorithm, environment and seed, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.run_folder import RunFolder, write_yaml

RESULT, OUTPUT = "result.yml", "output"


@dataclass(frozen=True)
class Combination:
    """One run of a sweep.

    Attributes:
        algo: The algorithm.
        env_id: The environment.
        seed: The seed.
        number: The number of its run folder, the same for one seed everywhere in the sweep.
    """

    algo: str
    env_id: str
    seed: int
    number: int

    def __str__(self) -> str:
        return f"{self.algo} on {self.env_id}, seed {self.seed}"

    @property
    def name(self) -> str:
        """The combination as a file's name."""
        return f"{algo_folder_name(self.algo)}_{env_folder_name(self.env_id)}_seed{self.seed}"

    def run(self, folder: Path) -> RunFolder:
        """Its run folder in the sweep's folder."""
        name = f"{env_folder_name(self.env_id)}_{self.number}"
        return RunFolder(folder / algo_folder_name(self.algo) / name, self.env_id)

    def output(self, folder: Path) -> Path:
        """Where its output goes in the sweep's folder."""
        return folder / OUTPUT / f"{self.name}.log"


@dataclass(frozen=True)
class RunResult:
    """What a finished run has come to; it lies in the run folder, and is what says that the run is finished.

    Attributes:
        mean_reward: Mean return of the final evaluation.
        std_reward: Its standard deviation over episodes.
        episodes: Episodes of the final evaluation.
        num_timesteps: Env steps done.
        seconds: Wall-clock time since the run was started, or started again.
    """

    mean_reward: float
    std_reward: float
    episodes: int
    num_timesteps: int
    seconds: float


def write_result(run: RunFolder, result: RunResult) -> None:
    """Notes that a run is finished."""
    write_yaml(run.path / RESULT, vars(result))


def read_result(run: RunFolder) -> RunResult | None:
    """Reads what a run has come to.

    Returns:
        The result; None when the run is not finished.

    Raises:
        ConfigError: The file is none of ours.
    """
    path = run.path / RESULT
    if not path.exists():
        return None
    content: Any = read_yaml(path, run_file=True)
    names = RunResult.__dataclass_fields__
    if not isinstance(content, Mapping) or not names.keys() <= content.keys():
        raise ConfigError(f"{path} holds no result of a run")
    return RunResult(**{name: content[name] for name in names})
