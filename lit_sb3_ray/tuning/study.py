"""A study: trials at work on Ray, drawn by Optuna, cut short by a scheduler, kept in Optuna's storage."""

from __future__ import annotations

import logging
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment.locate import algo_folder_name
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.drawing import space_of
from lit_sb3_ray.tuning.drivers import Lease, dead_drivers, enter
from lit_sb3_ray.tuning.objectives import check_objective
from lit_sb3_ray.tuning.reports.report import report_path, write_reports
from lit_sb3_ray.tuning.rows import DRIVER, HYPERPARAMS, WARM_START, break_off, enqueue_continuation, to_continue
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.schedule.population import find_members
from lit_sb3_ray.tuning.schedule.schedulers import SCHEDULERS
from lit_sb3_ray.tuning.space.grid import grid_of
from lit_sb3_ray.tuning.space.samplers import build_sampler, choose_sampler, worker_seed
from lit_sb3_ray.tuning.space.warm_start import packaged_params
from lit_sb3_ray.tuning.storage import claim_for, open_storage, open_study
from lit_sb3_ray.tuning.study_folder import StudyFolder, claim_study, describe_study, remove_study
from lit_sb3_ray.tuning.sweeps.retraining import Retrained, retrain
from lit_sb3_ray.tuning.trial import trial_settings

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.tuning.space.search_space import SearchSpace

logger = logging.getLogger(__name__)

FOLDER, TOTAL = "folder", "total"
# Inside a study's folder: the runs of the best hyperparameters with fresh seeds.
RETRAINED = "retrained"


@dataclass(frozen=True)
class StudyResult:
    """What a study has found.

    Attributes:
        study_name: Its name in the storage.
        storage: The storage.
        number: Number of the best trial; None when no trial is complete, and then the next three are empty.
        value: Its value.
        params: What it has drawn, by the names of the search space.
        hyperparams: The whole entry that trains as it did.
        table: One row a trial, as a `pandas.DataFrame`.
        path: The table's CSV file; None when it could not be written.
        best_path: The entry as a hyperparameter file.
        folder: The study's folder.
        page: The report to read; None when it could not be written.
        retrained: What the best hyperparameters have come to with fresh seeds; None where that was not asked for.
    """

    study_name: str
    storage: str
    number: int | None
    value: float | None
    params: dict[str, Any]
    hyperparams: dict[str, Any]
    table: Any
    path: Path | None
    best_path: Path | None
    folder: Path
    page: Path | None = None
    retrained: Retrained | None = None


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


def run_study(manager: ExperimentManager) -> StudyResult:
    """Runs a manager's study to its number of trials, until a signal, or until its time is over, and writes the reports.

    A trial that fails is kept as FAIL with its error, and the study goes on.

    Args:
        manager: Its settings are the study's; `stop_signal` is set when a signal has ended it.

    Returns:
        The best trial and all others.

    Raises:
        ConfigError: Wrong settings, a storage that cannot be opened, or trials that Ray can never have the resources for.
    """
    from lit_sb3_ray.tuning.running import carry_out, find_room

    manager.optimize_hyperparameters = True
    _check(manager)
    space = space_of(manager)
    sampler = choose_sampler(manager.sampler, space.numbers_only, manager.max_total_trials or manager.n_trials, space)
    if manager.pruner == "pbt":
        find_members(space, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
    if manager.storage:
        open_storage(manager.storage)
    room = find_room(manager)
    opened = _open(manager, space, sampler)
    try:
        with SignalStop(StopGuard()) as stop:
            carry_out(manager, opened, room, stop)
    finally:
        opened.lease.end()
    manager.stop_signal = stop.signum
    result = _result(manager, opened)
    count = manager.study_options.retrain_best
    if count < 1 or result.best_path is None or stop.signum is not None:
        return result
    return replace(result, retrained=_retrain(manager, result.best_path, opened.folder, count))


def _retrain(manager: ExperimentManager, best: Path, folder: StudyFolder, count: int) -> Retrained:
    budget, options = manager.hyperparams.n_timesteps, manager.study_options
    # The final model is evaluated where evaluations are on at all.
    kept = {"config": str(best), "hyperparams": None, "n_timesteps": budget, "eval_freq": budget}
    return retrain(
        {**trial_settings(manager), **kept, "log_folder": str(folder.path)},
        count,
        manager.seed,
        folder=folder.path / RETRAINED,
        cpus_per_run=options.cpus_per_trial,
        gpus_per_run=options.gpus_per_trial,
        n_jobs=manager.n_jobs,
    )


def _check(manager: ExperimentManager) -> None:
    if manager.trial_id is not None:
        raise ConfigError("a study draws its trials itself: --trial-id is for training with a trial's hyperparameters")
    if manager.trained_agent:
        raise ConfigError("a study trains each trial from scratch: -i cannot be given with it")
    if manager.n_trials < 1 or (manager.max_total_trials is not None and manager.max_total_trials < 1):
        raise ConfigError("n_trials and max_total_trials must be at least 1")
    if manager.n_startup_trials < 0:
        raise ConfigError(f"n_startup_trials must be at least 0, not {manager.n_startup_trials}")
    if manager.seeds_per_trial < 1:
        raise ConfigError(f"seeds_per_trial must be at least 1, not {manager.seeds_per_trial}")
    if manager.n_jobs is not None and manager.n_jobs < 1:
        raise ConfigError(f"--n-jobs must be at least 1, not {manager.n_jobs}; without it as many trials run as fit")
    check_objective(manager.trial_objective)
    if manager.pruner not in SCHEDULERS:
        raise unknown("pruner", manager.pruner, SCHEDULERS)
    evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)


def _open(manager: ExperimentManager, space: SearchSpace, sampler: str) -> OpenStudy:
    options = manager.study_options
    made: StudyFolder | None = None
    if options.entrance == "new":
        made = claim_study(manager.log_folder, manager.algo, manager.env_id)
    elif not (manager.storage and manager.study_name):
        raise ConfigError("--resume and --join need the study: its folder, or --storage and --study-name")
    storage = manager.storage or str(made.journal if made else "")
    name = manager.study_name or (f"{algo_folder_name(manager.algo)}_{made.path.name}" if made else "")
    try:
        study = open_study(storage, name, must_exist=made is None)
        claim_for(study, manager.algo)
        lease = enter(study, options.entrance, f"study {name!r} in {storage}")
    except ConfigError:
        if made is not None:
            remove_study(made)
        raise
    known = len(study.get_trials(deepcopy=False))
    seed = worker_seed(manager.seed, lease.driver.number, known)
    study.sampler = build_sampler(sampler, seed, manager.n_startup_trials, space)
    folder = made or StudyFolder(Path(study.user_attrs[FOLDER]))
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


def _result(manager: ExperimentManager, opened: OpenStudy) -> StudyResult:
    study, folder = opened.study, opened.folder.path
    files = write_reports(study, folder, no_optim_plots=manager.no_optim_plots, table=report_path(manager))
    table = study.trials_dataframe()
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return StudyResult(study.study_name, opened.storage, None, None, {}, {}, table, files.table, None, folder, files.page)
    best = study.best_trial
    found = (best.number, best.value, best.params, dict(best.user_attrs[HYPERPARAMS]))
    return StudyResult(study.study_name, opened.storage, *found, table, files.table, files.best, folder, files.page)
