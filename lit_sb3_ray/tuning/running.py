"""Running a study on Ray Tune."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from ray import tune
from rich.console import Console

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.quiet import quieter
from lit_sb3_ray.scale.process import Process
from lit_sb3_ray.tuning.crowd import Crowd
from lit_sb3_ray.tuning.drawing import draw
from lit_sb3_ray.tuning.ending import release
from lit_sb3_ray.tuning.live import LiveTable
from lit_sb3_ray.tuning.room import Room, trials_home
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.schedule.judge import Judge
from lit_sb3_ray.tuning.schedule.population import MemberSpace, PopulationTraining, build_pbt, find_members
from lit_sb3_ray.tuning.schedule.schedulers import build_scheduler, original_number, recorded_rows, restore_rungs
from lit_sb3_ray.tuning.search import StudySearch
from lit_sb3_ray.tuning.study_folder import OUTPUT, TRIALS, file_name
from lit_sb3_ray.tuning.trainable import METRIC, NUMBER, ExperimentTrial, TrialPlan
from lit_sb3_ray.tuning.trial_maker import TrialMaker, packed
from lit_sb3_ray.tuning.watch import StudyEnd, Watch

if TYPE_CHECKING:
    from optuna import Study
    from ray.tune.experiment import Trial

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.experiment.signals import SignalStop
    from lit_sb3_ray.experiment.study_options import StudyOptions
    from lit_sb3_ray.tuning.opening import OpenStudy
    from lit_sb3_ray.tuning.space.search_space import SearchSpace

logger = logging.getLogger(__name__)

# A member's checkpoint must be there until whoever takes it over has read it.
DONOR_CHECKPOINTS = 4


def carry_out(manager: ExperimentManager, opened: OpenStudy, room: Room, stop: SignalStop) -> None:
    """Runs trials until the study has all of them, or until it is to end.

    Args:
        manager: The study's manager.
        opened: The study.
        room: What its trials have.
        stop: Takes signals.

    Raises:
        ConfigError: The first trial of all has shown that the settings are wrong.
    """
    options, study = manager.study_options, opened.study
    request, at_once = room.request, room.at_once
    marks = evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)
    plan = _plan(manager, marks, opened.folder.path / OUTPUT if room.has_output else None, study.study_name)
    space: SearchSpace | MemberSpace = opened.space
    if plan.is_population:
        space = find_members(opened.space, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
        scheduler: Judge | PopulationTraining = build_pbt(space, marks, manager.seed)
        # Members that find no room are paused in turn.
        at_once = max(at_once, opened.total)
        if manager.n_jobs is not None and manager.n_jobs < opened.total:
            logger.warning(
                "A population is trained side by side: as many of its %d members as fit, --n-jobs aside", opened.total
            )
    else:
        scheduler = _scheduler(manager, study, marks)
    drawn = partial(draw, manager, space)
    search = StudySearch(study, opened.total, drawn, manager.trial_objective, opened.lease)
    trainable = tune.with_parameters(ExperimentTrial, plan=plan)
    logger.info("Up to %d trials at once, each with %s", at_once, request.required_resources)
    work = Work(
        tune.with_resources(trainable, request),
        at_once,
        scheduler,
        plan.is_population,
        None if plan.is_population else room.count,
    )
    run_trials(opened, search, work, options, stop, Console(stderr=True) if manager.verbose > 0 else None)


@dataclass(frozen=True)
class Work:
    """What a study runs.

    Attributes:
        trainable: The trial, with its resources.
        at_once: How many of it at the same time.
        scheduler: What ends weak ones.
        is_population: Whether trials take over each other's checkpoints, which therefore stay a while.
        count: Counts anew how many at the same time; None where that never changes.
    """

    trainable: Any
    at_once: int
    scheduler: Judge | PopulationTraining
    is_population: bool = False
    count: Callable[[], int] | None = None


def run_trials(
    opened: OpenStudy, search: StudySearch, work: Work, options: StudyOptions, stop: SignalStop, console: Console | None
) -> None:
    """Lets Ray Tune run what a search draws.

    Args:
        opened: The study.
        search: Draws trials and takes what becomes of them.
        work: What is run.
        options: How often a lost trial is tried again, the time budget, and where Tune keeps its folders.
        stop: Takes signals.
        console: Where the table of trials is shown; None for nowhere.

    Raises:
        ConfigError: The first trial of all has shown that the settings are wrong.
    """
    table = LiveTable(opened.total, console)
    crowd = Crowd(search, work.at_once, work.count)
    home = trials_home(options)
    watch = Watch(search, opened.lease, table, work.scheduler, keeps_checkpoints=work.is_population, home=home, crowd=crowd)
    tuner = tune.Tuner(
        work.trainable,
        tune_config=tune.TuneConfig(
            metric=METRIC,
            mode="max",
            search_alg=crowd.search,
            scheduler=work.scheduler,
            num_samples=-1,
            reuse_actors=True,
            trial_dirname_creator=_trial_folder,
        ),
        run_config=tune.RunConfig(
            name=file_name(opened.study.study_name) if options.storage_path else TRIALS,
            storage_path=home or str(opened.folder.path),
            failure_config=tune.FailureConfig(max_failures=options.max_failures),
            checkpoint_config=tune.CheckpointConfig(
                num_to_keep=DONOR_CHECKPOINTS if work.is_population else 1, checkpoint_at_end=False
            ),
            stop=StudyEnd(search, stop, options.time_budget),
            callbacks=[watch],
            verbose=0,
        ),
    )
    try:
        with quieter("ray.tune", logging.CRITICAL), table:
            tuner.fit()
    except BaseException:  # Also a second Ctrl-C.
        release(work.scheduler.controller)
        raise
    finally:
        watch.close()
        search.close()
    if search.fatal is not None:
        raise ConfigError(search.fatal)


def _scheduler(manager: ExperimentManager, study: Study, marks: tuple[int, ...]) -> Judge:
    """Builds the scheduler, which knows what trials of earlier drivers have reported."""
    known: dict[int, int] = {}

    def key_of(trial: Trial) -> int:
        """Names a trial by the row in which it began, whoever goes on with it."""
        number: int = trial.config[NUMBER]
        if number not in known:
            known[number] = original_number(study.get_trials(deepcopy=False), number)
        return known[number]

    scheduler = build_scheduler(manager.pruner, marks, manager.seed, manager.n_startup_trials, key_of)
    restore_rungs(scheduler, recorded_rows(study.get_trials(deepcopy=False)))
    return scheduler


def trial_seeds(seed: int, count: int) -> tuple[int, ...]:
    """Seeds that each trial of a study trains with: the study's own first, as `train` with it would, then independent ones."""
    more = np.random.SeedSequence([seed, 0x7121A1]).generate_state(max(count - 1, 1)) // 2
    return (seed, *(int(value) for value in more[: count - 1]))


def _plan(manager: ExperimentManager, marks: tuple[int, ...], output: Path | None, study: str) -> TrialPlan:
    maker, options = TrialMaker.of(manager), manager.study_options
    if options.gpus_per_trial == 0 and manager.device == "auto":
        # Ray hides no GPU from a trial that has asked for none.
        maker.settings["device"] = "cpu"
    if manager.vec_env_type == "auto" and manager.env_timeout is None:
        # Trials side by side need the CPUs, and each has been given its own.
        maker.settings["vec_env_type"] = "dummy"
    folder = manager.optimization_log_path
    seeds = trial_seeds(manager.seed, manager.seeds_per_trial)
    process = Process.of_this(options.cpus_per_trial, options.gpus_per_trial)
    kept = None if not folder else str(Path(folder).absolute())
    population = manager.pruner == "pbt"
    printed = None if output is None else str(output)
    return TrialPlan(packed(maker), marks, seeds, options.checkpoint_every, kept, printed, process, population, study)


def _trial_folder(trial: Trial) -> str:
    return f"trial_{trial.config[NUMBER]:05d}_{trial.trial_id}"
