"""A study: trials at work on Ray, drawn by Optuna, cut short by a scheduler, kept in Optuna's storage."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.checking import check_storage, check_study
from lit_sb3_ray.tuning.drivers import drivers_of
from lit_sb3_ray.tuning.keeping import kept
from lit_sb3_ray.tuning.opening import OpenStudy, open_for_work
from lit_sb3_ray.tuning.remote_copy import keep_copy
from lit_sb3_ray.tuning.reports.best import train_words
from lit_sb3_ray.tuning.reports.record import record
from lit_sb3_ray.tuning.reports.report import trials_table, write_reports
from lit_sb3_ray.tuning.rows import HYPERPARAMS, finished, trained
from lit_sb3_ray.tuning.sweeps.retraining import Retrained, retrain
from lit_sb3_ray.tuning.trial_maker import trial_settings

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)

# Inside a study's folder: the runs of the best hyperparameters with fresh seeds, by the trial that these are of.
RETRAINED = "retrained"


@dataclass(frozen=True)
class StudyResult:
    """What a study has found.

    Attributes:
        study_name: Its name in the storage.
        storage: The storage.
        number: Number of the best trial; None when no trial is complete, and then the next three are empty.
        value: Its value.
        params: What it has drawn, by the names of the search space; of a warm start what the file says.
        hyperparams: The whole entry that trains as it did.
        table: One row a trial, as a `pandas.DataFrame`.
        path: The table's CSV file; None when it could not be written.
        best_path: The entry as a hyperparameter file.
        folder: The study's folder.
        page: The report to read; None when it could not be written.
        retrained: What the best hyperparameters have come to with fresh seeds; None where that was not asked for.
        missing: How many trials of the total are not over, and nobody is at work on them.
        train_words: A command line that trains with the best trial's hyperparameters, but for the file of them.
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
    train_words: tuple[str, ...] = ()


def run_study(manager: ExperimentManager) -> StudyResult:
    """Runs a manager's study to its number of trials, until a signal, or until its time is over, and writes the reports.

    A trial that fails is kept as FAIL with its error, and the study goes on.

    Args:
        manager: Its settings are the study's; `stop_signal` is set when a signal has ended it.

    Returns:
        The best trial and all others.

    Raises:
        ConfigError: Wrong settings, a storage that cannot be opened, or trials that Ray can never have the resources for.
        StudyError: The storage or the disk fails while the study runs.
    """
    from lit_sb3_ray.tuning.room import find_room
    from lit_sb3_ray.tuning.running import carry_out

    manager.optimize_hyperparameters = True
    space, sampler = check_study(manager)
    _try_fit(manager)
    check_storage(manager, space)
    room = find_room(manager)
    # From here on a signal finds something to end in good order.
    with SignalStop(StopGuard()) as stop:
        opened = open_for_work(manager, space, sampler)
        with kept(opened.study.study_name):
            try:
                carry_out(manager, opened, room, stop)
            finally:
                opened.lease.end()
    manager.stop_signal = stop.signum
    result = _result(manager, opened)
    count = manager.study_options.retrain_best
    if count > 0 and result.best_path is not None and stop.signum is None and _is_last(opened):
        retrained = _retrain(manager, result.best_path, opened.folder.path / RETRAINED / f"trial_{result.number:05d}", count)
        if retrained is not None:
            manager.stop_signal = retrained.result.stop_signal
            result = replace(result, retrained=retrained)
    keep_copy(opened.folder.path, manager.study_options.storage_path, result.study_name)
    return result


def _is_last(opened: OpenStudy) -> bool:
    """Whether nobody works on a study any more: only then its best trial is settled."""
    others = [driver for driver in drivers_of(opened.study) if driver.alive]
    if others:
        logger.info("The best trial is trained again by the driver that ends last; %s is at work", others[0].told())
    return not others


def _try_fit(manager: ExperimentManager) -> None:
    try:
        manager.try_fit()
    except ConfigError:
        raise
    except Exception:  # An env may raise anything; if it is no accident, trials tell it with the traceback.
        logger.info("%s on %s cannot be tried out beforehand", manager.algo, manager.env_id, exc_info=True)


def _retrain(manager: ExperimentManager, best: Path, folder: Path, count: int) -> Retrained | None:
    """Trains the best trial again; None where a driver that has ended in the same moment is at it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = RunLock(folder.parent)
    except ConfigError as error:
        logger.info("The best trial is trained again by another driver: %s", error)
        return None
    # A copy: the study's own file may come to hold another trial, and the study may be moved.
    config = folder / best.name
    replace_file(config, lambda partial: shutil.copyfile(best, partial))
    budget, options = manager.hyperparams.n_timesteps, manager.study_options
    # The final model is evaluated where evaluations are on at all.
    kept = {"config": str(config), "hyperparams": None, "n_timesteps": budget, "eval_freq": budget}
    try:
        return retrain(
            {**trial_settings(manager), **kept, "log_folder": str(folder)},
            count,
            manager.seed,
            folder=folder,
            cpus_per_run=options.cpus_per_trial,
            gpus_per_run=options.gpus_per_trial,
            n_jobs=manager.n_jobs,
            max_failures=options.max_failures,
        )
    finally:
        lock.release()


def _result(manager: ExperimentManager, opened: OpenStudy) -> StudyResult:
    study, folder = opened.study, opened.folder.path
    files = write_reports(study, folder, no_optim_plots=manager.no_optim_plots, tables=folder.parent)
    table = trials_table(study)
    over = sum(map(finished, study.get_trials(deepcopy=False)))
    others = any(driver.alive for driver in drivers_of(study))
    result = StudyResult(study.study_name, opened.storage, None, None, {}, {}, table, files.table, None, folder, files.page)
    result = replace(result, missing=0 if others else max(0, opened.total - over))
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return result
    best = study.best_trial
    entry = dict(best.user_attrs[HYPERPARAMS])
    result = replace(result, train_words=tuple(train_words(record(study), entry)))
    return replace(result, number=best.number, value=best.value, params=trained(best), hyperparams=entry, best_path=files.best)
