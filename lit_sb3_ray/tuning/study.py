"""A study: trials at work on Ray, drawn by Optuna, cut short by a scheduler, kept in Optuna's storage."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.drawing import space_of
from lit_sb3_ray.tuning.drivers import drivers_of
from lit_sb3_ray.tuning.opening import OpenStudy, check_settings, check_storage, open_for_work
from lit_sb3_ray.tuning.remote_copy import keep_copy
from lit_sb3_ray.tuning.reports.report import report_path, write_reports
from lit_sb3_ray.tuning.rows import HYPERPARAMS, finished
from lit_sb3_ray.tuning.schedule.population import find_members
from lit_sb3_ray.tuning.space.samplers import choose_sampler
from lit_sb3_ray.tuning.study_folder import StudyFolder
from lit_sb3_ray.tuning.sweeps.retraining import Retrained, retrain
from lit_sb3_ray.tuning.trial_maker import trial_settings

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)

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
        missing: How many trials of the total are not over, and nobody is at work on them.
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
    missing: int = 0


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
    check_settings(manager)
    _try_fit(manager)
    space = space_of(manager)
    sampler = choose_sampler(manager.sampler, space.numbers_only, manager.max_total_trials or manager.n_trials, space)
    if manager.pruner == "pbt":
        find_members(space, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
    check_storage(manager)
    room = find_room(manager)
    opened = open_for_work(manager, space, sampler)
    try:
        with SignalStop(StopGuard()) as stop:
            carry_out(manager, opened, room, stop)
    finally:
        opened.lease.end()
    manager.stop_signal = stop.signum
    result = _result(manager, opened)
    count = manager.study_options.retrain_best
    if count > 0 and result.best_path is not None and stop.signum is None:
        result = replace(result, retrained=_retrain(manager, result.best_path, opened.folder, count))
    keep_copy(opened.folder.path, manager.study_options.storage_path, result.study_name)
    return result


def _try_fit(manager: ExperimentManager) -> None:
    try:
        manager.try_fit()
    except ConfigError:
        raise
    except Exception:  # An env may raise anything; if it is no accident, trials tell it with the traceback.
        logger.info("%s on %s cannot be tried out beforehand", manager.algo, manager.env_id, exc_info=True)


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


def _result(manager: ExperimentManager, opened: OpenStudy) -> StudyResult:
    study, folder = opened.study, opened.folder.path
    files = write_reports(study, folder, no_optim_plots=manager.no_optim_plots, table=report_path(manager))
    table = study.trials_dataframe()
    over = sum(map(finished, study.get_trials(deepcopy=False)))
    others = any(driver.alive for driver in drivers_of(study))
    result = StudyResult(study.study_name, opened.storage, None, None, {}, {}, table, files.table, None, folder, files.page)
    result = replace(result, missing=0 if others else max(0, opened.total - over))
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return result
    best = study.best_trial
    entry = dict(best.user_attrs[HYPERPARAMS])
    return replace(result, number=best.number, value=best.value, params=best.params, hyperparams=entry, best_path=files.best)
