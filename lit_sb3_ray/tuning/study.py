"""A study: trials one after another, kept in Optuna's storage, reported at the end."""

from __future__ import annotations

import gc
import logging
import shlex
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna import TrialPruned
from optuna.trial import TrialState
from stable_baselines3.her import HerReplayBuffer

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.conversion import convert
from lit_sb3_ray.tuning.pruners import build_pruner, evaluation_marks
from lit_sb3_ray.tuning.report import best_entry, report_path, write_best, write_table
from lit_sb3_ray.tuning.samplers import build_sampler, choose_sampler
from lit_sb3_ray.tuning.spaces import sample
from lit_sb3_ray.tuning.storage import claim_for, open_study
from lit_sb3_ray.tuning.trial import TrialRun, TrialStopped, trial_manager

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

    from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)

# User attributes of a trial.
FAILURE, TRACEBACK, TIMESTEPS = "failure", "traceback", "num_timesteps"
SHOWN = ("gamma", "n_steps", "batch_size")


@dataclass(frozen=True)
class StudyResult:
    """What a study has found.

    Attributes:
        study_name: Its name in the storage.
        number: Number of the best trial; None when no trial is complete, and then the next three are empty.
        value: Its last mean return.
        params: What it has drawn, by the names of the search space.
        hyperparams: The whole entry that trains as it did.
        table: One row a trial, as a `pandas.DataFrame`.
        path: The table's CSV file.
        best_path: The entry as a hyperparameter file.
    """

    study_name: str
    number: int | None
    value: float | None
    params: dict[str, Any]
    hyperparams: dict[str, Any]
    table: Any
    path: Path
    best_path: Path | None


def run_study(manager: ExperimentManager) -> StudyResult:
    """Runs a manager's study to its number of trials, or until a signal, and writes the reports.

    A trial that fails is kept as FAIL with its error, and the study goes on. With `max_total_trials` the trials of all
    processes on the study count, but for those that were broken off.

    Args:
        manager: Its settings are the study's; `stop_signal` is set when a signal has ended it.

    Returns:
        The best trial and all others.

    Raises:
        ConfigError: Wrong settings, or a storage that cannot be opened.
    """
    manager.optimize_hyperparameters = True
    _check(manager)
    study = _open(manager)
    begun = 0
    with SignalStop(StopGuard()) as stop:
        while stop.signum is None and _wants_more(manager, study, begun):
            begun += 1
            try:
                _carry_out(manager, study, is_first=begun == 1)
            except TrialStopped as stopped:
                stop.signum = stopped.signum
    manager.stop_signal = stop.signum
    return _result(manager, study)


def objective(manager: ExperimentManager, trial: Trial) -> float:
    """Carries one trial out: draws hyperparameters, trains with them, evaluates on the way.

    Args:
        manager: The study's manager.
        trial: The trial.

    Returns:
        The last mean return.

    Raises:
        TrialPruned: The pruner has ended it.
        TrialStopped: A signal has ended it; it is a `KeyboardInterrupt`.
        ConfigError: The hyperparameters do not suit the env.
        NonFiniteError: The training has diverged.
    """
    hyperparams = draw(manager, trial)
    marks = evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)
    folder = Path(manager.optimization_log_path) / f"trial_{trial.number}" if manager.optimization_log_path else None
    with (
        SignalStop(StopGuard()) as stop,
        closing(TrialRun(trial_manager(manager, hyperparams), marks, stop, folder)) as run,
    ):
        while True:
            point = run.advance()
            trial.report(point.mean_reward, point.mark)
            trial.set_user_attr(TIMESTEPS, point.num_timesteps)
            # A trial that has used its budget is complete, whatever the pruner thinks of it.
            if run.done:
                return point.mean_reward
            if trial.should_prune():
                raise TrialPruned


def draw(manager: ExperimentManager, trial: Trial) -> dict[str, Any]:
    """Draws a trial's parameters and makes hyperparameters of them.

    Args:
        manager: The study's manager.
        trial: The trial; `gamma`, `n_steps` and `batch_size` become attributes of it.

    Returns:
        The hyperparameters, to go between the file's and the command line's.
    """
    sample(manager.algo, trial, her=_uses_her(manager))
    hyperparams = convert(manager.algo, trial.params, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
    for name in SHOWN:
        if name in hyperparams:
            trial.set_user_attr(name, hyperparams[name])
    return hyperparams


def _check(manager: ExperimentManager) -> None:
    if manager.trial_id is not None:
        raise ConfigError("a study draws its trials itself: --trial-id is for training with a trial's hyperparameters")
    if manager.trained_agent:
        raise ConfigError("a study trains each trial from scratch: -i cannot be given with it")
    if manager.n_trials < 1 or (manager.max_total_trials is not None and manager.max_total_trials < 1):
        raise ConfigError("n_trials and max_total_trials must be at least 1")
    if manager.n_startup_trials < 0:
        raise ConfigError(f"n_startup_trials must be at least 0, not {manager.n_startup_trials}")
    if manager.n_jobs is not None and manager.n_jobs != 1:
        logger.warning("n_jobs %d: trials run one after another in this version", manager.n_jobs)


def _open(manager: ExperimentManager) -> Study:
    """Opens the study; each run of it draws differently, since the sampler's seed counts the trials that are there."""
    name = manager.study_name or f"{algo_folder_name(manager.algo)}_{env_folder_name(manager.env_id)}_{int(time.time())}"
    trial = _probe(manager)
    numbers_only = all(isinstance(value, int | float) for value in trial.params.values())
    sampler = choose_sampler(manager.sampler, numbers_only, manager.max_total_trials or manager.n_trials)
    marks = evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)
    pruner = build_pruner(manager.pruner, marks, manager.n_startup_trials)
    study = open_study(manager.storage, name)
    known = len(study.get_trials(deepcopy=False))
    seed = int(np.random.SeedSequence([manager.seed, known]).generate_state(1)[0])
    study.sampler, study.pruner = build_sampler(sampler, seed, manager.n_startup_trials), pruner
    if not study.user_attrs:
        study.set_user_attr("command", shlex.join(sys.argv))
        for key, value in manager.saved_hyperparams.items():
            study.set_user_attr(key, to_plain(value))
    claim_for(study, manager.algo)
    if manager.storage is not None:
        logger.info("Study %s in %s, %d trials so far", name, manager.storage, known)
    return study


def _probe(manager: ExperimentManager) -> Trial:
    """One draw that is thrown away: finds out what the space has, and what of it the command line settles."""
    trial = open_study(None, None).ask()
    settled = draw(manager, trial).keys() & (manager.custom_hyperparams or {}).keys()
    if settled:
        logger.warning("Given, and so not searched: %s", ", ".join(sorted(settled)))
    return trial


def _uses_her(manager: ExperimentManager) -> bool:
    buffer = manager.hyperparams.model_kwargs.get("replay_buffer_class")
    return isinstance(buffer, type) and issubclass(buffer, HerReplayBuffer)


def _wants_more(manager: ExperimentManager, study: Study, begun: int) -> bool:
    if manager.max_total_trials is None:
        return begun < manager.n_trials
    trials = study.get_trials(deepcopy=False)
    return sum(_counts(trial) for trial in trials) < manager.max_total_trials


def _counts(trial: FrozenTrial) -> bool:
    """Whether a trial counts towards the total: not one that is waiting, or was broken off by a signal."""
    if trial.state == TrialState.FAIL:
        return FAILURE in trial.user_attrs
    return trial.state != TrialState.WAITING


def _carry_out(manager: ExperimentManager, study: Study, is_first: bool) -> None:
    trial = study.ask()
    try:
        value = objective(manager, trial)
    except TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
        logger.info("Trial %d is pruned after %s env steps", trial.number, trial.user_attrs[TIMESTEPS])
    except Exception as error:
        # Whatever an env, a wrapper or a diverged model raises is that trial's end and not the study's.
        _fail(study, trial, error)
        if is_first and isinstance(error, ConfigError):
            raise  # Before anything has worked it is the settings that are wrong, not what was drawn.
    except BaseException:  # A signal goes on, and leaves no row that looks as if it were running.
        study.tell(trial, state=TrialState.FAIL)
        raise
    else:
        study.tell(trial, value)
        best = study.best_trial
        logger.info("Trial %d: mean reward %.2f (best: %.2f of trial %d)", trial.number, value, best.value, best.number)
    finally:
        gc.collect()  # A model and its trainer refer to each other; buffers are large.


def _fail(study: Study, trial: Trial, error: Exception) -> None:
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    trial.set_user_attr(FAILURE, reason)
    trial.set_user_attr(TRACEBACK, "".join(traceback.format_exception(error)))
    study.tell(trial, state=TrialState.FAIL)
    logger.warning("Trial %d has failed: %s; its parameters: %s", trial.number, reason, trial.params)


def _result(manager: ExperimentManager, study: Study) -> StudyResult:
    path = report_path(manager)
    table = write_table(study, path)
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        return StudyResult(study.study_name, None, None, {}, {}, table, path, None)
    best = study.best_trial
    hyperparams = _hyperparams_of(manager, best.params)
    best_path = path.with_suffix(".best.yml")
    write_best(manager, hyperparams, best_path)
    return StudyResult(study.study_name, best.number, best.value, best.params, hyperparams, table, path, best_path)


def _hyperparams_of(manager: ExperimentManager, params: Mapping[str, Any]) -> dict[str, Any]:
    converted = convert(manager.algo, params, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
    return dict(to_plain(best_entry(manager, converted)))
