"""`lit-sb3-ray train`: one experiment from its hyperparameters to a saved and evaluated agent."""

from __future__ import annotations

import argparse
import secrets
import shlex
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.flags import ParsedFlags, parse_flags
from lit_sb3_ray.cli.loading import load_to_stay
from lit_sb3_ray.cli.output import set_up_logging, spread
from lit_sb3_ray.cli.ray_flags import ray_settings
from lit_sb3_ray.cli.stopping import terminable
from lit_sb3_ray.cli.train_parser import build_parser
from lit_sb3_ray.cli.tune import optimize, study_settings, tell_plan
from lit_sb3_ray.config.ranges import MAX_SEED
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment.arguments import resumed_arguments, train_arguments
from lit_sb3_ray.experiment.locate import check_model_file
from lit_sb3_ray.experiment.study_options import StudyOptions

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.lit.loggers import WandbSettings


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `train`.

    Returns:
        0; 1 when no trial of a study is complete; 128 + the signal's number when a signal stopped the training, what was
        trained being saved then too.

    Raises:
        ConfigError: Bad input; found before any environment is built.
    """
    with terminable():
        args = read_settings(parse_flags(build_parser(), argv, train_arguments()))
        check_settings(args)
        set_up_logging(args.verbose)
        manager = build_manager(args)
    if args.optimize_hyperparameters:
        return tell_plan(manager) if args.dry_run else optimize(manager, args)
    if args.dry_run:
        print(manager.describe())
        return 0
    return _train(manager, args)


def read_settings(flags: ParsedFlags) -> argparse.Namespace:
    """Settles all settings: those of the run to go on with, or those of the command line, with a seed drawn if none is given.

    Args:
        flags: The parsed command line.

    Returns:
        The settings, as `args.yml` keeps them.

    Raises:
        ConfigError: `--resume` names no run, or another flag contradicts that run.
    """
    args = flags.values
    if args.optimize_hyperparameters:
        if args.from_study:
            raise ConfigError("--from-study trains as one trial did, and -optimize searches: give one of them")
        return study_settings(flags)
    if args.from_study:
        args = study_trial_settings(flags)
    if args.resume:
        from lit_sb3_ray.experiment.run_folder import open_run, read_arguments

        saved = read_arguments(open_run(args.resume))
        if not isinstance(saved["seed"], int) or saved["seed"] < 0:
            raise ConfigError(f"--resume {args.resume}: its args.yml is damaged and holds no seed")
        return argparse.Namespace(**resumed_arguments(saved, flags.given, args.resume))
    args.seed = drawn_seed(args.seed)
    return args


def study_trial_settings(flags: ParsedFlags) -> argparse.Namespace:
    """Settles the settings of a run that trains as a trial of a study did.

    Args:
        flags: The parsed command line, with `from_study`; whatever else it gives goes over the study's.

    Returns:
        The settings, with the study's algorithm, env, seed, budget and evaluation.

    Raises:
        ConfigError: There is no such study or trial.
    """
    from lit_sb3_ray.tuning.replay import replay_settings
    from lit_sb3_ray.tuning.storage import find_trial
    from lit_sb3_ray.tuning.study_folder import open_study_folder

    args, given = flags.values, flags.given
    _, storage, name, saved = open_study_folder(args.from_study)
    kept = replay_settings(saved, find_trial(storage, name, args.trial_id))
    return argparse.Namespace(**train_arguments({**kept, **given, "storage": storage, "study_name": name}))


def drawn_seed(seed: int) -> int:
    """The seed asked for, or a drawn one where none, that is a negative one, is."""
    return secrets.randbelow(MAX_SEED) if seed < 0 else seed


def check_settings(args: argparse.Namespace) -> None:
    """Refuses what cannot be carried out, before anything is built.

    Args:
        args: The settings.

    Raises:
        ConfigError: The first fault found.
    """
    ray_settings(args).make_importable()
    if args.trial_id is not None and not (args.storage and args.study_name):
        raise ConfigError("--trial-id needs --storage and --study-name")
    _check_names(args)
    load_to_stay("lit_sb3_ray.experiment.manager")
    if args.seed > MAX_SEED:
        raise ConfigError(f"--seed {args.seed} is above {MAX_SEED}, the largest seed numpy takes")
    if args.trained_agent:
        check_model_file(args.trained_agent, "-i")
    _check_actors(args)
    _check_loggers(args)


def logger_names(args: argparse.Namespace) -> tuple[str, ...] | None:
    """Tells which loggers are asked for.

    Args:
        args: The settings.

    Returns:
        Their names without repeats; empty for `--logger none`, None when nothing is asked for.
    """
    if args.logger is None and not args.track:
        return None
    names = [*(args.logger or ()), *(["wandb"] if args.track else [])]
    return tuple(dict.fromkeys(name for name in names if name != "none"))


def wandb_settings(args: argparse.Namespace, now: int) -> WandbSettings:
    """Builds what Weights & Biases is told about the run.

    Args:
        args: The settings.
        now: Unix time in seconds, which makes the run's name unique.

    Returns:
        Name, project, entity, group, tags, and all settings as its configuration.
    """
    from stable_baselines3 import __version__ as sb3_version

    from lit_sb3_ray.lit.loggers import WandbSettings

    return WandbSettings(
        name=f"{args.env}__{args.algo}__{args.seed}__{now}",
        project=args.wandb_project_name,
        entity=args.wandb_entity,
        group=args.wandb_group,
        tags=(*args.wandb_tags, f"v{sb3_version}"),
        config=dict(vars(args)),
    )


def build_manager(args: argparse.Namespace) -> ExperimentManager:
    """Builds the experiment; nothing is created on disk yet and no environment is built.

    Args:
        args: The settings.

    Returns:
        The experiment's manager.

    Raises:
        ConfigError: Unknown algorithm or environment, or wrong hyperparameters.
    """
    from lit_sb3_ray.experiment.manager import ExperimentManager

    names = logger_names(args)
    studying = args.optimize_hyperparameters
    return ExperimentManager(
        args,
        args.algo,
        args.env,
        args.log_folder,
        tensorboard_log=args.tensorboard_log,
        n_timesteps=args.n_timesteps,
        eval_freq=args.eval_freq,
        n_eval_episodes=args.eval_episodes,
        save_freq=args.save_freq,
        hyperparams=args.hyperparams,
        env_kwargs=args.env_kwargs,
        eval_env_kwargs=args.eval_env_kwargs,
        trained_agent=args.trained_agent,
        optimize_hyperparameters=args.optimize_hyperparameters,
        storage=args.storage,
        study_name=args.study_name,
        n_trials=args.n_trials,
        max_total_trials=args.max_total_trials,
        n_jobs=args.n_jobs,
        sampler=args.sampler,
        pruner=args.pruner,
        optimization_log_path=args.optimization_log_path,
        n_startup_trials=args.n_startup_trials,
        n_evaluations=args.n_evaluations,
        truncate_last_trajectory=args.truncate_last_trajectory,
        uuid_str=f"_{uuid.uuid4()}" if args.uuid else "",
        seed=args.seed,
        log_interval=args.log_interval,
        save_replay_buffer=args.save_replay_buffer,
        verbose=args.verbose,
        vec_env_type=args.vec_env,
        n_eval_envs=args.n_eval_envs,
        no_optim_plots=args.no_optim_plots,
        device=args.device,
        config=args.conf_file,
        show_progress=args.progress,
        trial_id=args.trial_id,
        n_envs=args.n_envs,
        resume="" if studying else args.resume,
        loggers=names,
        wandb=wandb_settings(args, int(time.time())) if names and "wandb" in names else None,
        fast=args.fast,
        precision=args.precision,
        profiler=args.profiler,
        keep_checkpoints=args.keep_checkpoints,
        log_freq=args.log_freq,
        async_eval=args.async_eval,
        gym_packages=args.gym_packages,
        num_threads=args.num_threads,
        search_space=args.search_space,
        seeds_per_trial=args.seeds_per_trial,
        trial_objective=args.objective,
        study_options=study_options(args),
        envs_per_actor=args.envs_per_actor,
        env_cpus=args.env_cpus,
        env_timeout=args.env_timeout,
        max_env_restarts=args.max_env_restarts,
        placement=args.placement,
        devices=args.devices,
        ray_settings=ray_settings(args),
    )


def study_options(args: argparse.Namespace) -> StudyOptions:
    """Builds how a study's trials are carried out.

    Args:
        args: The settings.
    """
    return StudyOptions(
        cpus_per_trial=args.cpus_per_trial,
        gpus_per_trial=args.gpus_per_trial,
        max_failures=args.max_failures,
        time_budget=args.time_budget,
        entrance="join" if args.join else "resume" if args.resume and args.optimize_hyperparameters else "new",
        warm_start=args.warm_start,
        checkpoint_every=args.checkpoint_every,
        retrain_best=args.retrain_best,
        storage_path=args.storage_path,
    )


def _check_names(args: argparse.Namespace) -> None:
    """Refuses a misspelt algorithm, environment or file at once, before Lightning and torch are loaded for seconds."""
    from lit_sb3_ray.config.algorithms import ALGOS
    from lit_sb3_ray.envs.families import register_env

    if ":" not in args.algo and args.algo not in ALGOS and args.algo.lower() != "her":
        raise unknown("algorithm", args.algo, ALGOS, "--algo")
    # A resumed run has its hyperparameters in its own folder.
    is_file = bool(args.conf_file) and args.conf_file.endswith((".yml", ".yaml", ".py"))
    if is_file and not args.resume and not Path(args.conf_file).is_file():
        raise ConfigError(f"--conf-file {args.conf_file!r}: there is no such file")
    register_env(args.env, args.gym_packages)


def _check_actors(args: argparse.Namespace) -> None:
    """Refuses flags of env actors where none can be; what is gone on with may be so elsewhere than it was begun."""
    from lit_sb3_ray.experiment.stepping import of_actors

    idle = [] if args.vec_env != "dummy" or args.resume or args.join else of_actors(vars(args))
    if idle:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
        raise ConfigError(f"{flags} with --vec-env dummy, which has no actors: leave out one or the other")


def _check_loggers(args: argparse.Namespace) -> None:
    names = logger_names(args) or ()
    if args.logger and "none" in args.logger and (names or args.tensorboard_log):
        raise ConfigError("--logger none stands alone: it cannot be given with other loggers, -tb or --track")


def _train(manager: ExperimentManager, args: argparse.Namespace) -> int:
    talks = args.verbose > 0
    if talks:
        print(f"{args.algo} on {args.env}, seed {args.seed}", flush=True)
    with terminable():
        model = manager.setup_experiment()
    assert model is not None, "only a study has no model"
    manager.learn(model)
    manager.save_trained_model(model)
    run_folder = str(manager.save_path)
    if manager.stop_signal is not None:
        how = f"Go on with: lit-sb3-ray train --resume {shlex.quote(run_folder)}"
        told = how if args.keep_checkpoints > 0 else f"The model is in {run_folder}; no checkpoints are kept to go on from"
        print(f"Stopped and saved. {told}", file=sys.stderr)
        return 128 + manager.stop_signal
    result = manager.final_evaluation()
    if talks and result is not None:
        mean, std = result
        print(f"Mean reward of the final model: {spread(mean, std)} ({args.eval_episodes} episodes)")
    if talks:
        print(run_folder)
    return 0
