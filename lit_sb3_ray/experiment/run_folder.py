"""The run folder: rl_zoo3's tree, in plain YAML, with what a resume needs beside it.

<log folder>/<algo>/<E>_<k>[_<uuid>]/
  <i>.monitor.csv, evaluations.npz, metrics.csv, provenance.yml
  <E>.zip, best_model.zip, rl_model_<T>_steps.zip          models: final, best, on the way
  best_model_vecnormalize.pkl, rl_model_vecnormalize_<T>_steps.pkl
  replay_buffer.pkl
  pending_evaluation_<T>.zip, ..._vecnormalize.pkl         copies whose evaluations are not recorded yet
  checkpoints/<T>/                                         all that is needed to go on
  .lock                                                    held by the process that trains
  <E>/config.yml, args.yml, command.txt, vecnormalize.pkl  settings, and the final statistics
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import train_arguments
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name, find_settings, list_runs

BEST, FINAL_BUFFER = "best_model.zip", "replay_buffer.pkl"
BEST_STATISTICS = "best_model_vecnormalize.pkl"
PENDING = "pending_evaluation_"


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run.

    Attributes:
        path: The run folder.
        env_id: The run's environment.
        parents_made: Folders above it that were made for it, innermost first.
    """

    path: Path
    env_id: str
    parents_made: tuple[Path, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """The environment's id as folders spell it."""
        return env_folder_name(self.env_id)

    @property
    def settings(self) -> Path:
        """Where the settings and the final statistics are."""
        return self.path / self.name

    @property
    def model(self) -> Path:
        """The final model."""
        return self.path / f"{self.name}.zip"

    @property
    def statistics(self) -> Path:
        """The final model's normalisation statistics."""
        return self.settings / "vecnormalize.pkl"

    @property
    def best(self) -> Path:
        """The best model so far."""
        return self.path / BEST

    @property
    def best_statistics(self) -> Path:
        """The best model's normalisation statistics."""
        return self.path / BEST_STATISTICS

    @property
    def buffer(self) -> Path:
        """The final replay buffer."""
        return self.path / FINAL_BUFFER

    @property
    def evaluations(self) -> Path:
        """Results of all evaluations."""
        return self.path / "evaluations.npz"

    @property
    def metrics(self) -> Path:
        """All that SB3's logger has dumped."""
        return self.path / "metrics.csv"

    @property
    def checkpoints(self) -> Path:
        """The checkpoint folders, named by env steps."""
        return self.path / "checkpoints"

    def step_model(self, num_timesteps: int) -> Path:
        """The model saved at an env step."""
        return self.path / f"rl_model_{num_timesteps}_steps.zip"

    def pending_model(self, num_timesteps: int) -> Path:
        """The copy of the model taken at an env step, while its evaluation is not recorded."""
        return self.path / f"{PENDING}{num_timesteps}.zip"

    def pending_statistics(self, num_timesteps: int) -> Path:
        """The statistics of that copy."""
        return self.path / f"{PENDING}{num_timesteps}_vecnormalize.pkl"

    def step_statistics(self, num_timesteps: int) -> Path:
        """The statistics of the model saved at an env step."""
        return self.path / f"rl_model_vecnormalize_{num_timesteps}_steps.pkl"

    def statistics_of(self, model: Path) -> Path:
        """The statistics that belong to one of the run's models; the final ones where rl_zoo3 kept no others."""
        own = {BEST: self.best_statistics}.get(model.name, model)
        if model.name.startswith("rl_model_"):
            own = model.with_name(model.name.replace("rl_model_", "rl_model_vecnormalize_")).with_suffix(".pkl")
        return own if own != model and own.exists() else self.statistics


def claim(log_folder: str | Path, algo: str, env_id: str, uuid_str: str = "") -> RunFolder:
    """Makes the next free run folder; two starts at the same moment get two numbers.

    Args:
        log_folder: Root of all runs.
        algo: The algorithm's name.
        env_id: The environment's id.
        uuid_str: Appended to the folder's name.

    Raises:
        ConfigError: The folder cannot be written.
    """
    home = Path(log_folder) / algo_folder_name(algo)
    try:
        missing = tuple(folder for folder in (home, *home.parents) if not folder.exists())
        home.mkdir(parents=True, exist_ok=True)
        number = max((run.number for run in list_runs(home, env_id)), default=0)
        while True:
            number += 1
            path = home / f"{env_folder_name(env_id)}_{number}{uuid_str}"
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                break
        run = RunFolder(path, env_id, missing)
        run.settings.mkdir()
    except OSError as error:
        raise ConfigError(f"a run folder cannot be made in {str(home)!r}: {error.strerror or error}") from error
    return run


def remove(run: RunFolder) -> None:
    """Removes a run folder, and the folders above it that were made for it and hold nothing else."""
    shutil.rmtree(run.path)
    for parent in run.parents_made:
        try:
            parent.rmdir()
        except OSError:
            return


def open_run(path: str | Path, env_id: str | None = None) -> RunFolder:
    """Opens an existing run folder.

    Args:
        path: The folder.
        env_id: The environment, where models of several lie in one folder; None for what the run says.

    Raises:
        ConfigError: It is none.
    """
    folder = Path(path)
    settings = find_settings(folder, env_id)
    if env_id is not None:
        return RunFolder(folder, env_id)
    arguments = _read_mapping(settings / "args.yml", "arguments") if (settings / "args.yml").exists() else {}
    env_id = str(arguments.get("env") or settings.name)
    # The folder's own name wins where a run was moved or renamed.
    return RunFolder(folder, env_id if env_folder_name(env_id) == settings.name else settings.name)


def pending_files(folder: Path) -> list[Path]:
    """The copies in a folder whose evaluations are not recorded, each with its statistics."""
    return sorted(folder.glob(f"{PENDING}*"))


def pending_steps(folder: Path) -> set[int]:
    """The env steps of the copies in a folder whose evaluations are not recorded."""
    numbers = [path.stem.removeprefix(PENDING) for path in folder.glob(f"{PENDING}*.zip")]
    return {int(number) for number in numbers if number.isdigit()}


def check_writable(folder: str | Path, flag: str) -> None:
    """Checks, without leaving anything behind, that a folder can be written to, or made where it is not there yet.

    Args:
        folder: The folder.
        flag: The flag that named it, for the message.

    Raises:
        ConfigError: It cannot.
    """
    if "://" in str(folder):
        raise ConfigError(f"{flag} {str(folder)!r} is a URL, and must be a folder here: --storage-path alone takes one")
    existing = Path(folder).absolute()
    try:
        # A name that can be none, such as one that is too long, raises here.
        os.stat(existing)
    except FileNotFoundError:
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
    except NotADirectoryError:
        existing = next(parent for parent in existing.parents if parent.exists())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{flag} {str(folder)!r} cannot be written: {getattr(error, 'strerror', None) or error}") from error
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"{flag} {str(folder)!r} cannot be written: {existing} is no writable folder")


def read_arguments(run: RunFolder) -> dict[str, Any]:
    """Reads the settings that a run was started with.

    Args:
        run: The run folder.

    Returns:
        The arguments of `train`, filled up with its defaults.

    Raises:
        ConfigError: There is no readable `args.yml`.
    """
    path = run.settings / "args.yml"
    arguments = _read_mapping(path, "arguments")
    for name in ("env_kwargs", "eval_env_kwargs"):
        if not isinstance(arguments.get(name), dict | None):
            raise ConfigError(f"{path} is damaged: {name} is {arguments[name]!r} and no mapping")
    for name in ("algo", "env"):
        if not isinstance(arguments.get(name, ""), str):
            raise ConfigError(f"{path} is damaged: {name} is {arguments[name]!r} and no name")
    return train_arguments(arguments)


def read_hyperparameters(run: RunFolder) -> dict[str, Any]:
    """Reads the unprocessed hyperparameters that a run was started with.

    Raises:
        ConfigError: There is no readable `config.yml`.
    """
    return _read_mapping(run.settings / "config.yml", "hyperparameters")


def _read_mapping(path: Path, what: str) -> dict[str, Any]:
    content = read_yaml(path, run_file=True)
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds no {what}")
    return content


def write_settings(run: RunFolder, saved_hyperparams: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Writes what the run is made of: `config.yml`, `args.yml`, and a line of `command.txt` each time it is started."""
    run.settings.mkdir(parents=True, exist_ok=True)
    write_yaml(run.settings / "config.yml", dict(sorted(saved_hyperparams.items())))
    write_yaml(run.settings / "args.yml", train_arguments(arguments))
    with (run.settings / "command.txt").open("a") as file:
        file.write(f"{' '.join(sys.orig_argv)}\n")


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Writes plain YAML, whole or not at all."""
    text = yaml.safe_dump(to_plain(content), sort_keys=False, allow_unicode=True)
    replace_file(path, lambda partial: partial.write_text(text))


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file under a temporary name and renames it, so that whoever reads it finds the old or the new one, whole.

    Args:
        path: The file.
        write: Writes to the path it is given; it may not append a suffix of its own. What it has written is removed when it
            fails.
    """
    partial = path.with_name(f".{path.name}.partial{path.suffix}")
    try:
        write(partial)
        partial.replace(path)
    except BaseException:  # Ctrl-C as well: whatever it was goes on, and leaves nothing half written.
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
