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
    from lit_sb3_ray.experiment.environments import ExperimentEnvs

logger = logging.getLogger(__name__)


def file_entry(experiment: ExperimentEnvs) -> tuple[dict[str, Any], str]:
    """Reads the file's hyperparameters for an experiment's env.

    Args:
        experiment: The experiment.

    Returns:
        The entry, unprocessed, and where it stands.

    Raises:
        ConfigError: There is no such file or entry.
    """
    source = read_entries(experiment.config, experiment.algo)
    entry, key = select_entry(source, experiment.env_id, is_atari(experiment.env_id))
    return entry, f"{source.label}, entry {key}"


def saved_entry(experiment: ExperimentEnvs) -> tuple[dict[str, Any], str]:
    """Reads the hyperparameters of the run that an experiment goes on with.

    A function or an object has no more than its name in `config.yml`: such are read again from where they came from.

    Args:
        experiment: The experiment.

    Returns:
        The hyperparameters, unprocessed, and where they stand.

    Raises:
        ConfigError: They cannot be read, or have changed.
    """
    saved, where = read_hyperparameters(experiment.run), str(experiment.run.settings / "config.yml")
    try:
        resolve(saved, experiment.algo, where, n_timesteps=experiment.n_timesteps)
    except ConfigError as refused:
        hint = "a value that no file can hold is read again from --conf-file"
        if experiment.config is None:
            raise ConfigError(f"{refused}; {hint}, and the run had none") from refused
        try:
            entry, source = file_entry(experiment)
        except ConfigError as error:
            raise ConfigError(f"{refused}; {hint}, but {error}") from error
        raw = merge(entry, None, experiment.custom_hyperparams)
        if raw.keys() != saved.keys():
            changed = ", ".join(sorted(raw.keys() ^ saved.keys()))
            raise ConfigError(f"{refused}; {hint}, but {source} has other keys by now: {changed}") from refused
        logger.warning("Hyperparameters are read again from %s: %s", source, refused)
        return raw, source
    return saved, where
