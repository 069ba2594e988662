"""Where an experiment's hyperparameters stand: a file's entry, or the run that is gone on with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, resolve, select_entry
from lit_sb3_ray.envs.families import is_atari
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.run_folder import read_hyperparameters

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)


def file_entry(manager: ExperimentManager) -> tuple[dict[str, Any], str]:
    """Reads the file's hyperparameters for an experiment's env.

    Args:
        manager: The experiment.

    Returns:
        The entry, unprocessed, and where it stands.

    Raises:
        ConfigError: There is no such file or entry.
    """
    source = read_entries(manager.config, manager.algo)
    entry, key = select_entry(source, manager.env_id, is_atari(manager.env_id))
    return entry, f"{source.label}, entry {key}"


def saved_entry(manager: ExperimentManager) -> tuple[dict[str, Any], str]:
    """Reads the hyperparameters of the run that an experiment goes on with.

    A function or an object has no more than its name in `config.yml`: such are read again from where they came from.

    Args:
        manager: The experiment.

    Returns:
        The hyperparameters, unprocessed, and where they stand.

    Raises:
        ConfigError: They cannot be read, or have changed.
    """
    saved, where = read_hyperparameters(manager.run), str(manager.run.settings / "config.yml")
    try:
        resolve(saved, manager.algo, where, n_timesteps=manager.n_timesteps)
    except ConfigError as refused:
        hint = "a value that no file can hold is read again from --conf-file"
        if manager.config is None:
            raise ConfigError(f"{refused}; {hint}, and the run had none") from refused
        try:
            entry, source = file_entry(manager)
        except ConfigError as error:
            raise ConfigError(f"{refused}; {hint}, but {error}") from error
        raw = merge(entry, None, manager.custom_hyperparams)
        if raw.keys() != saved.keys():
            changed = ", ".join(sorted(raw.keys() ^ saved.keys()))
            raise ConfigError(f"{refused}; {hint}, but {source} has other keys by now: {changed}") from refused
        logger.warning("Hyperparameters are read again from %s: %s", source, refused)
        return raw, source
    return saved, where
