"""What is refused before a study is begun or gone on with; nothing of a study is written here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, check_distribution_compatibility

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment.run_folder import check_writable
from lit_sb3_ray.scale.remote_folder import is_url
from lit_sb3_ray.tuning.drawing import space_of
from lit_sb3_ray.tuning.drivers import check_entrance
from lit_sb3_ray.tuning.objectives import check_objective
from lit_sb3_ray.tuning.reports.earlier import check_not_shorter
from lit_sb3_ray.tuning.reports.record import record
from lit_sb3_ray.tuning.reports.report import PAGE
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.schedule.schedulers import SCHEDULERS
from lit_sb3_ray.tuning.space.samplers import choose_sampler
from lit_sb3_ray.tuning.storage import check_algorithm, find_existing
from lit_sb3_ray.tuning.study_folder import StudyFolder, read_study

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.tuning.space.search_space import SearchSpace

# Attributes of a study.
FOLDER, TOTAL, SEED = "folder", "total", "study_seed"
# Numbers of trials and so on that mean something. The command line refuses others itself, by the names of its flags.
LEAST = {"n_trials": 1, "max_total_trials": 1, "n_startup_trials": 0, "seeds_per_trial": 1, "n_jobs": 1, "n_evaluations": 1}


def check_study(manager: ExperimentManager) -> tuple[SearchSpace, str]:
    """Refuses settings of a study that mean nothing; nothing is built or written.

    Args:
        manager: The study's manager.

    Returns:
        What it searches, and the name of its sampler, which is not `auto`.

    Raises:
        ConfigError: The first fault found.
    """
    _check_settings(manager)
    space = space_of(manager)
    sampler = choose_sampler(manager.sampler, space.numbers_only, manager.max_total_trials or manager.n_trials, space)
    if manager.pruner == "pbt":
        from lit_sb3_ray.tuning.schedule.population import find_members

        find_members(space, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
    return space, sampler


def _check_settings(manager: ExperimentManager) -> None:
    if manager.trial_id is not None:
        raise ConfigError("a study draws its trials itself: --trial-id is for training with a trial's hyperparameters")
    if manager.trained_agent:
        raise ConfigError("a study trains each trial from scratch: -i cannot be given with it")
    for name, least in LEAST.items():
        number = getattr(manager, name)
        if number is not None and number < least:
            raise ConfigError(f"{name} must be at least {least}, not {number}")
    check_objective(manager.trial_objective)
    if manager.pruner not in SCHEDULERS:
        raise unknown("pruner", manager.pruner, SCHEDULERS)
    marks = evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)
    check_objective(manager.trial_objective, len(marks))
    check_writable(manager.log_folder, "--log-folder")
    if manager.study_options.storage_path and not is_url(manager.study_options.storage_path):
        check_writable(manager.study_options.storage_path, "--storage-path")
    if manager.optimization_log_path:
        check_writable(manager.optimization_log_path, "--optimization-log-path")


def check_storage(manager: ExperimentManager, space: SearchSpace) -> None:
    """Refuses a storage, or a study in it, that cannot be worked on as asked for; nothing of a study is written.

    Args:
        manager: The study's manager.
        space: What is searched.

    Raises:
        ConfigError: It cannot.
    """
    entrance, storage, name = manager.study_options.entrance, manager.storage, manager.study_name
    if entrance != "new" and not (storage and name):
        raise ConfigError("--resume and --join need the study: its folder, or --storage and --study-name")
    study = None if storage is None else find_existing(storage, name)
    if study is not None:
        check_entrance(study, entrance, f"study {name!r} in {storage}")
        check_algorithm(study, manager.algo)
        if entrance != "new":
            folder_of(manager, study, str(storage))
            _check_same(manager, study)
            _check_space(study, space)


def folder_of(manager: ExperimentManager, study: Study, storage: str) -> StudyFolder:
    """Finds the folder of a study that is to be gone on with, and sees whether the study is as long as it was."""
    if FOLDER not in study.user_attrs:
        where = f"study {study.study_name!r} in {storage}"
        check_entrance(study, "new", where)
        raise ConfigError(f"{where} has not been begun: leave --resume and --join out")
    folder = StudyFolder(Path(study.user_attrs[FOLDER]))
    named = StudyFolder(Path(os.path.abspath(manager.args.get("resume") or manager.args.get("join") or "")))
    if named.settings.is_file() and read_study(named.settings)[:2] == (storage, study.study_name):
        folder = named  # It may have been moved.
    # A study that was begun on another machine may have it where nobody may write here.
    check_writable(folder.path, f"the folder of study {study.study_name!r},")
    check_not_shorter(record(study), folder.path / PAGE)
    return folder


def character(manager: ExperimentManager) -> dict[str, Any]:
    """What all trials of a study have in common, so that their values compare; by the names of the study's attributes."""
    # As a storage gives it back.
    hyperparams = json.loads(json.dumps({key: to_plain(value) for key, value in manager.saved_hyperparams.items()}))
    return {
        **hyperparams,
        "env": manager.env_id,
        "n_timesteps": manager.hyperparams.n_timesteps,
        "n_eval_episodes": manager.n_eval_episodes,
        "n_eval_envs": manager.n_eval_envs,
        "marks": list(evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)),
        "pruner": manager.pruner,
        "objective": manager.trial_objective,
        "seeds_per_trial": manager.seeds_per_trial,
        SEED: manager.seed,
    }


def _check_same(manager: ExperimentManager, study: Study) -> None:
    """Refuses settings with which a trial would be worth something else than those that are there."""
    for key, value in character(manager).items():
        known = study.user_attrs.get(key, value)
        if known != value:
            raise ConfigError(f"study {study.study_name!r} was begun with {key} {known!r}, not {value!r}")


def _check_space(study: Study, space: SearchSpace) -> None:
    """Refuses another space than that of the rows: Optuna keeps no row with other choices, and every trial would fail."""
    known: dict[str, BaseDistribution] = {}
    for row in study.get_trials(deepcopy=False):
        known = {**row.distributions, **known}
    for name, distribution in space.probe().items():
        try:
            check_distribution_compatibility(known.get(name, distribution), distribution)
        except ValueError as error:
            raise ConfigError(
                f"{name} in {space.label} is not what study {study.study_name!r} was begun with: it was {known[name]}, and is "
                f"{distribution}: take the space back, or begin a new study"
            ) from error
