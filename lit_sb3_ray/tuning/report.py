"""What a study leaves: rl_zoo3's table of trials, and the best trial as a hyperparameter file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.hyperparams import merge
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.run_folder import write_yaml

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.manager import ExperimentManager


def report_path(manager: ExperimentManager) -> Path:
    """Names the table: `<log folder>/<algo>/report_<E>_<n_trials>-trials-<n_timesteps>-<sampler>-<pruner>_<unix time>.csv`."""
    what = f"{manager.n_trials}-trials-{manager.hyperparams.n_timesteps}-{manager.sampler}-{manager.pruner}"
    name = f"report_{env_folder_name(manager.env_id)}_{what}_{int(time.time())}.csv"
    return Path(manager.log_folder) / algo_folder_name(manager.algo) / name


def write_table(study: Study, path: Path) -> Any:
    """Writes one row a trial: number, value, times, parameters, user attributes, state.

    Args:
        study: The study.
        path: The CSV file; its folder is made.

    Returns:
        The same as a `pandas.DataFrame`.
    """
    table = study.trials_dataframe()
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path)
    return table


def best_entry(manager: ExperimentManager, hyperparams: dict[str, Any]) -> dict[str, Any]:
    """Makes the entry of a hyperparameter file that trains as a trial did.

    Args:
        manager: The study's manager.
        hyperparams: The trial's hyperparameters.

    Returns:
        The file's hyperparameters, over them the trial's, over both those given; `n_timesteps` and `n_envs` are the study's.
    """
    merged = merge(manager.entry(), hyperparams, manager.custom_hyperparams)
    return {**merged, "n_timesteps": manager.hyperparams.n_timesteps, "n_envs": manager.n_envs}


def write_best(manager: ExperimentManager, entry: dict[str, Any], path: Path) -> None:
    """Writes an entry as a file for `--conf-file`."""
    write_yaml(path, {manager.env_id: dict(sorted(entry.items()))})
