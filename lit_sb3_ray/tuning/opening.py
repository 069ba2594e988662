"""Opening a study to work on: its folder, its place among the drivers, what it says of itself, what it takes over."""

from __future__ import annotations

import logging
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.entries import file_entry
from lit_sb3_ray.experiment.locate import algo_folder_name
from lit_sb3_ray.tuning.checking import FOLDER, TOTAL, character, folder_of
from lit_sb3_ray.tuning.drivers import Lease, dead_drivers, enter
from lit_sb3_ray.tuning.remote_copy import check_no_copy
from lit_sb3_ray.tuning.reports.record import FULL_BUDGET, RUN_FLAGS
from lit_sb3_ray.tuning.rows import DRIVER, WARM_START, break_off, enqueue_continuation, to_continue
from lit_sb3_ray.tuning.space.grid import grid_of
from lit_sb3_ray.tuning.space.samplers import build_sampler, worker_seed
from lit_sb3_ray.tuning.space.warm_start import packaged_params
from lit_sb3_ray.tuning.storage import claim_for, open_study
from lit_sb3_ray.tuning.study_folder import StudyFolder, claim_study, describe_study, remove_study

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.tuning.space.search_space import SearchSpace

logger = logging.getLogger(__name__)


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
        if made is not None:
            check_no_copy(options.storage_path, name)
        study = open_study(storage, name, must_exist=made is None)
        claim_for(study, manager.algo)
        folder = made or folder_of(manager, study, storage)
        lease = enter(study, options.entrance, f"study {name!r} in {storage}")
    except ConfigError:
        if made is not None:
            remove_study(made)
        raise
    try:
        known = len(study.get_trials(deepcopy=False))
        seed = worker_seed(manager.seed, lease.driver.worker, known)
        study.sampler = build_sampler(sampler, seed, manager.n_startup_trials, space)
        total = _total(manager, study, sampler, space)
        opened = OpenStudy(study, storage, folder, lease, total, space)
        _write_down(manager, opened)
    except BaseException:  # Also Ctrl-C: whatever it is goes on, and nobody is at work then.
        lease.end()
        raise
    logger.info("Study %s in %s: %d of %d trials so far", name, storage, known, total)
    return opened


def _write_down(manager: ExperimentManager, opened: OpenStudy) -> None:
    """Writes into a study and its folder what this driver begins with."""
    study, folder, options = opened.study, opened.folder, manager.study_options
    _note(manager, study, folder, opened.total)
    if options.entrance != "join":
        describe_study(folder, opened.storage, study.study_name, manager.arguments())
    if options.entrance == "resume":
        _take_over(study, folder)
    if options.entrance == "new" and options.warm_start:
        nearest = packaged_params(opened.space, manager.entry(), manager.given_n_envs)
        study.enqueue_trial(nearest, user_attrs={WARM_START: True})


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
        noted = {"command": shlex.join(sys.argv), "sampler": manager.sampler, FOLDER: str(folder.path), **character(manager)}
        noted |= {RUN_FLAGS: run_flags(manager), FULL_BUDGET: _file_budget(manager)}
        for key, value in noted.items():
            study.set_user_attr(key, value)
    if study.user_attrs.get(TOTAL) != total:
        study.set_user_attr(TOTAL, total)


def run_flags(manager: ExperimentManager) -> list[str]:
    """Writes the flags that a run on a study's env needs: who registers the env, and what it is made with."""
    words = ["--gym-packages", *manager.gym_packages] if manager.gym_packages else []
    for flag, given in (("--env-kwargs", manager.env_kwargs), ("--eval-env-kwargs", manager.eval_env_kwargs)):
        words += [flag, *(f"{name}:{value!r}" for name, value in given.items())] if given else []
    return words


def _file_budget(manager: ExperimentManager) -> tuple[int | None, str]:
    """The env steps that the study's file says, if it does, and the file's name."""
    entry, where = file_entry(manager)
    steps = to_number(entry.get("n_timesteps"))
    return None if steps is None else int(steps), where.rpartition(", entry ")[0]


def _take_over(study: Study, folder: StudyFolder) -> None:
    """Puts what dead drivers were working on back into the queue."""
    dead = dead_drivers(study)
    for row in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        # A driver may have died between taking a row and putting its name to it.
        if row.user_attrs.get(DRIVER) in {*dead, None}:
            break_off(study, row)
    before = str(study.user_attrs[FOLDER])
    for row in to_continue(study.get_trials(deepcopy=False)):
        enqueue_continuation(study, row, {before: str(folder.path)})
    if before != str(folder.path):
        study.set_user_attr(FOLDER, str(folder.path))
