"""Opening a study to work on: what is refused beforehand, its folder, its place among the drivers, what it says of itself."""

from __future__ import annotations

import logging
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment.locate import algo_folder_name
from lit_sb3_ray.tuning.drivers import Lease, check_entrance, dead_drivers, enter
from lit_sb3_ray.tuning.objectives import check_objective
from lit_sb3_ray.tuning.reports.earlier import check_not_shorter
from lit_sb3_ray.tuning.reports.record import record
from lit_sb3_ray.tuning.reports.report import PAGE
from lit_sb3_ray.tuning.rows import DRIVER, WARM_START, break_off, enqueue_continuation, to_continue
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.schedule.schedulers import SCHEDULERS
from lit_sb3_ray.tuning.space.grid import grid_of
from lit_sb3_ray.tuning.space.samplers import build_sampler, worker_seed
from lit_sb3_ray.tuning.space.warm_start import packaged_params
from lit_sb3_ray.tuning.storage import check_algorithm, claim_for, find_existing, open_study
from lit_sb3_ray.tuning.study_folder import StudyFolder, claim_study, describe_study, remove_study

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.tuning.space.search_space import SearchSpace

logger = logging.getLogger(__name__)

# Attributes of a study.
FOLDER, TOTAL = "folder", "total"
# Numbers of trials and so on that mean something. The command line refuses others itself, by the names of its flags.
LEAST = {"n_trials": 1, "max_total_trials": 1, "n_startup_trials": 0, "seeds_per_trial": 1, "n_jobs": 1, "n_evaluations": 1}


@dataclass(frozen=True)
class OpenStudy:
    """A study that this process works on.

    Attributes:
        study: The study.
        storage: Where it is kept.
        folder: Its folder.
        lease: This process's place among its drivers.
        total: Trials of the whole study.
        space: What is searched.
    """

    study: Study
    storage: str
    folder: StudyFolder
    lease: Lease
    total: int
    space: SearchSpace


def check_settings(manager: ExperimentManager) -> None:
    """Refuses settings of a study that mean nothing.

    Args:
        manager: The study's manager.

    Raises:
        ConfigError: The first fault found.
    """
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


def check_storage(manager: ExperimentManager) -> None:
    """Refuses a storage, or a study in it, that cannot be worked on as asked for; nothing of a study is written.

    Args:
        manager: The study's manager.

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
            _folder_of(study, str(storage))


def open_for_work(manager: ExperimentManager, space: SearchSpace, sampler: str) -> OpenStudy:
    """Begins a study, or goes on with one, as one of its drivers.

    Args:
        manager: The study's manager.
        space: What is searched.
        sampler: A name that `build_sampler` takes.

    Raises:
        ConfigError: It cannot be opened, or not as asked for.
    """
    options = manager.study_options
    made: StudyFolder | None = None
    if options.entrance == "new":
        made = claim_study(manager.log_folder, manager.algo, manager.env_id)
    storage = manager.storage or str(made.journal if made else "")
    name = manager.study_name or (f"{algo_folder_name(manager.algo)}_{made.path.name}" if made else "")
    try:
        study = open_study(storage, name, must_exist=made is None)
        claim_for(study, manager.algo)
        folder = made or _folder_of(study, storage)
        lease = enter(study, options.entrance, f"study {name!r} in {storage}")
    except ConfigError:
        if made is not None:
            remove_study(made)
        raise
    known = len(study.get_trials(deepcopy=False))
    seed = worker_seed(manager.seed, lease.driver.number, known)
    study.sampler = build_sampler(sampler, seed, manager.n_startup_trials, space)
    total = _total(manager, study, sampler, space)
    _note(manager, study, folder, total)
    if options.entrance != "join":
        describe_study(folder, storage, name, manager.arguments())
    if options.entrance == "resume":
        _take_over(study)
    if options.entrance == "new" and options.warm_start:
        nearest = packaged_params(space, manager.entry(), manager.given_n_envs)
        study.enqueue_trial(nearest, user_attrs={WARM_START: True})
    logger.info("Study %s in %s: %d of %d trials so far", name, storage, known, total)
    return OpenStudy(study, storage, folder, lease, total, space)


def _folder_of(study: Study, storage: str) -> StudyFolder:
    """Finds the folder of a study that is to be gone on with, and sees whether the study is as long as it was."""
    if FOLDER not in study.user_attrs:
        raise ConfigError(f"study {study.study_name!r} in {storage} has not been begun: leave --resume and --join out")
    folder = StudyFolder(Path(study.user_attrs[FOLDER]))
    check_not_shorter(record(study), folder.path / PAGE)
    return folder


def _total(manager: ExperimentManager, study: Study, sampler: str, space: SearchSpace) -> int:
    """How many trials the study is to have: as many as asked for, the points of a grid at most."""
    options = manager.study_options
    total = manager.max_total_trials or manager.n_trials
    if options.entrance == "join":
        total = max(total, study.user_attrs.get(TOTAL, 0))
    if sampler == "grid":
        total = min(total, grid_of(space).size + options.warm_start)
    return total


def _note(manager: ExperimentManager, study: Study, folder: StudyFolder, total: int) -> None:
    """Writes what a study is among its attributes; those of its beginning stay, but for the number of trials."""
    if TOTAL not in study.user_attrs:
        marks = evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)
        noted = {key: to_plain(value) for key, value in manager.saved_hyperparams.items()}
        noted |= {
            "command": shlex.join(sys.argv),
            "env": manager.env_id,
            "n_timesteps": manager.hyperparams.n_timesteps,
            "n_eval_episodes": manager.n_eval_episodes,
            "n_eval_envs": manager.n_eval_envs,
            "marks": list(marks),
            "pruner": manager.pruner,
            "sampler": manager.sampler,
            "objective": manager.trial_objective,
            FOLDER: str(folder.path),
        }
        for key, value in noted.items():
            study.set_user_attr(key, value)
    if study.user_attrs.get(TOTAL) != total:
        study.set_user_attr(TOTAL, total)


def _take_over(study: Study) -> None:
    """Puts what dead drivers were working on back into the queue."""
    dead = dead_drivers(study)
    for row in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        # A driver may have died between taking a row and putting its name to it.
        if row.user_attrs.get(DRIVER) in {*dead, None}:
            break_off(study, row)
    for row in to_continue(study.get_trials(deepcopy=False)):
        enqueue_continuation(study, row)
