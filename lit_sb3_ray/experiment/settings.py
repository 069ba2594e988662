"""The settings of one experiment: both ancestors' 37 parameters, in their order, and this package's own."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.config.ranges import MAX_THREADS
from lit_sb3_ray.envs import families
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.arguments import RAY_DEFAULTS, train_arguments
from lit_sb3_ray.experiment.checkpoints import latest_checkpoint
from lit_sb3_ray.experiment.given_types import check_types
from lit_sb3_ray.experiment.locate import check_model_file
from lit_sb3_ray.experiment.model_files import check_algorithm
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.experiment.shares import check_devices
from lit_sb3_ray.experiment.stepping import check_stepping
from lit_sb3_ray.experiment.study_options import StudyOptions
from lit_sb3_ray.lit.device import check_device
from lit_sb3_ray.lit.loggers import WandbSettings, check_loggers
from lit_sb3_ray.lit.profilers import PROFILERS
from lit_sb3_ray.lit.settings import PRECISIONS
from lit_sb3_ray.scale.ray_settings import RaySettings

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

logger = logging.getLogger(__name__)


class ExperimentSettings:
    """What an experiment is, before anything of it is built.

    Attributes:
        checkpoint: The checkpoint to go on from; None for a new run.
    """

    def __init__(
        self,
        args: argparse.Namespace | Mapping[str, Any] | None,
        algo: str,
        env_id: str,
        log_folder: str,
        tensorboard_log: str = "",
        n_timesteps: int = 0,
        eval_freq: int = 10000,
        n_eval_episodes: int = 5,
        save_freq: int = -1,
        hyperparams: dict[str, Any] | None = None,
        env_kwargs: dict[str, Any] | None = None,
        eval_env_kwargs: dict[str, Any] | None = None,
        trained_agent: str = "",
        optimize_hyperparameters: bool = False,
        storage: str | None = None,
        study_name: str | None = None,
        n_trials: int = 1,
        max_total_trials: int | None = None,
        n_jobs: int | None = None,
        sampler: str = "tpe",
        pruner: str = "asha",
        optimization_log_path: str | None = None,
        n_startup_trials: int = 0,
        n_evaluations: int | None = None,
        truncate_last_trajectory: bool = False,
        uuid_str: str = "",
        seed: int = 0,
        log_interval: int = -1,
        save_replay_buffer: bool = False,
        verbose: int = 1,
        vec_env_type: str = "auto",
        n_eval_envs: int = 1,
        no_optim_plots: bool = False,
        device: torch.device | str = "auto",
        config: str | None = None,
        show_progress: bool = False,
        trial_id: int | None = None,
        *,
        n_envs: int | None = None,
        resume: str = "",
        callbacks: Sequence[BaseCallback | pl.Callback] = (),
        loggers: Sequence[str | Logger] | None = (),
        wandb: WandbSettings | None = None,
        fast: bool = False,
        precision: str = "32-true",
        profiler: str | None = None,
        keep_checkpoints: int = 2,
        log_freq: int = -1,
        async_eval: bool = False,
        num_threads: int = -1,
        gym_packages: Sequence[str] = (),
        envs_per_actor: int | str | None = None,
        env_cpus: float | None = None,
        env_timeout: float | None = None,
        max_env_restarts: int = 3,
        placement: str | None = None,
        ray_settings: RaySettings | None = None,
        devices: int = 1,
        search_space: str | None = None,
        seeds_per_trial: int = 1,
        trial_objective: str = "last",
        study_options: StudyOptions | None = None,
    ) -> None:
        """Takes an experiment's settings; builds and writes nothing.

        Args:
            args: All settings, kept as `args.yml`; None for those given here alone.
            algo: A name in `ALGOS`, or `pkg.mod:Class`.
            env_id: Gymnasium id.
            log_folder: Root of all runs.
            tensorboard_log: Root of TensorBoard runs; empty for none.
            n_timesteps: Env steps; below 1 the hyperparameters' own number.
            eval_freq: Env steps between evaluations; below 1 there are none.
            n_eval_episodes: Episodes of an evaluation.
            save_freq: Env steps between checkpoints; below 1 only at the end and on a signal.
            hyperparams: Go over the file's, key by key.
            env_kwargs: Go over the file's, key by key.
            eval_env_kwargs: Stand in for `env_kwargs` in evaluation envs.
            trained_agent: A `.zip` to start warm from.
            optimize_hyperparameters: Search instead of training.
            storage: Study storage, an Optuna URL or a path ending in `.log`.
            study_name: Name of the study.
            n_trials: Trials of this process.
            max_total_trials: Trials of the whole study.
            n_jobs: Trials at a time; None for as many as fit.
            sampler: Sampler of the study.
            pruner: Pruner of the study.
            optimization_log_path: Folder for each trial's evaluations.
            n_startup_trials: Trials before the sampler starts to learn.
            n_evaluations: Evaluations of a trial.
            truncate_last_trajectory: When a HER buffer is loaded: take its last trajectory as ended.
            uuid_str: Appended to the run folder's name.
            seed: The one seed of everything.
            log_interval: Iterations or episodes between dumps of the logger; -1 for the algorithm's default, below it never.
            save_replay_buffer: Write the replay buffer at the end.
            verbose: 0 quiet, 1 tells, 2 tells all.
            vec_env_type: `auto`, `dummy`, `ray`; `subproc` means `ray`.
            n_eval_envs: Evaluation envs.
            no_optim_plots: No figures of the study.
            device: torch device, or `auto`.
            config: Hyperparameters: a YAML file, a `.py` file or a module; None for the packaged ones.
            show_progress: Show a progress bar.
            trial_id: Take the hyperparameters of this trial of the study.
            n_envs: Training envs, instead of the hyperparameters' number.
            resume: A run folder to go on with.
            callbacks: Further callbacks, SB3's or Lightning's.
            loggers: Names out of `tensorboard`, `csv`, `wandb`, `mlflow`, or Lightning loggers.
            wandb: Settings of the `wandb` logger.
            fast: Use what is faster but changes the last bits.
            precision: `32-true`, or `bf16-mixed` for updates.
            profiler: `simple`, `advanced` or `pytorch`; its report lies in the run folder.
            keep_checkpoints: Checkpoint folders that stay; 0 takes none.
            log_freq: Env steps between dumps of the logger; above 0 it replaces `log_interval`.
            async_eval: Evaluate copies of the model in a Ray actor while training goes on.
            num_threads: torch's threads; below 1 as many as the network is worth.
            gym_packages: Modules to import for their envs.
            envs_per_actor: Envs that an actor steps at most; None and `auto` leave it to the processors there are.
            env_cpus: CPUs that Ray reserves for each env actor; None takes an equal share of the free ones, one at most.
            env_timeout: Seconds after which an env actor that does not answer is replaced; None waits for ever.
            max_env_restarts: How often each env actor may be replaced.
            placement: Nodes of env actors: `strict-pack`, `pack` or `spread`; None is the first where one node has the room.
            ray_settings: Which Ray to work with, and what is shipped to it; None for the one that is found or made.
            devices: Learners, with a device and a share of the envs each; this process is the first of them.
            search_space: A study's search space: a YAML file or `pkg.mod:function`; None for the algorithm's own.
            seeds_per_trial: Seeds that each trial of a study trains with; its value is the mean over them.
            trial_objective: What a trial is worth: `last`, `best` or `mean:K`, of its evaluations.
            study_options: How a study's trials are carried out.

        Raises:
            ConfigError: Any of it is wrong.
        """
        numbers = check_types(locals())
        self.algo, self.env_id, self.log_folder, self.tensorboard_log = algo, env_id, log_folder, str(tensorboard_log or "")
        self.n_timesteps, self.eval_freq, self.n_eval_episodes, self.save_freq = (
            n_timesteps,
            eval_freq,
            n_eval_episodes,
            save_freq,
        )
        self.custom_hyperparams, self.env_kwargs, self.eval_env_kwargs = hyperparams, env_kwargs or {}, eval_env_kwargs
        self.trained_agent, self.truncate_last_trajectory = str(trained_agent or ""), truncate_last_trajectory
        self.optimize_hyperparameters, self.storage, self.study_name = optimize_hyperparameters, storage, study_name
        self.n_trials, self.max_total_trials, self.n_jobs = n_trials, max_total_trials, n_jobs
        self.sampler, self.pruner, self.optimization_log_path = sampler, pruner, optimization_log_path
        self.n_startup_trials, self.n_evaluations, self.no_optim_plots = n_startup_trials, n_evaluations, no_optim_plots
        self.uuid_str, self.seed, self.log_interval, self.verbose = uuid_str or "", seed, log_interval, verbose
        self.save_replay_buffer, self.vec_env_type, self.n_eval_envs = save_replay_buffer, vec_env_type, n_eval_envs
        self.device, self.config = device, None if config is None else str(config)
        self.show_progress, self.trial_id = show_progress, trial_id
        self.callbacks, self.wandb, self.fast, self.precision = list(callbacks or ()), wandb, fast, precision
        self.profiler, self.keep_checkpoints, self.log_freq = profiler, keep_checkpoints, log_freq
        self.num_threads, self.gym_packages, self.async_eval = num_threads, tuple(gym_packages or ()), async_eval
        self.envs_per_actor, self.env_cpus = envs_per_actor, env_cpus
        self.env_timeout, self.max_env_restarts, self.placement = env_timeout, max_env_restarts, placement
        self.ray_settings, self.devices = ray_settings or RaySettings(), devices
        self.search_space, self.seeds_per_trial = search_space, seeds_per_trial
        self.trial_objective, self.study_options = trial_objective, study_options or StudyOptions()
        self.loggers = list(dict.fromkeys([*(loggers or ()), *(["tensorboard"] if tensorboard_log else [])]))
        self.args = vars(args) if isinstance(args, argparse.Namespace) else dict(args or {})
        vars(self).update({name: number for name, number in numbers.items() if name != "n_envs"})
        self.given_n_envs = numbers.get("n_envs")
        self._run: RunFolder | None = run_folder.open_run(resume) if resume else None
        self.checkpoint: Path | None = None if self._run is None else latest_checkpoint(self._run)
        self._check()
        self._begin()

    def _begin(self) -> None:
        """Called last in construction: a subclass prepares its own state here, and the signature stays one."""

    @property
    def is_warm_start(self) -> bool:
        """Whether to start from `trained_agent`; a resumed run has what it took from it."""
        return bool(self.trained_agent) and self.checkpoint is None

    def arguments(self) -> dict[str, Any]:
        """What `args.yml` keeps: the arguments given, and over them what they have come to mean."""
        known = {
            "algo": self.algo,
            "env": self.env_id,
            "log_folder": self.log_folder,
            "seed": self.seed,
            "n_timesteps": self.n_timesteps if self.n_timesteps > 0 else -1,
            "env_kwargs": self.env_kwargs or None,
            "eval_env_kwargs": self.eval_env_kwargs,
            "n_envs": self.given_n_envs,
            "gym_packages": list(self.gym_packages),
            "async_eval": self.async_eval,
            "envs_per_actor": self.envs_per_actor,
            "env_cpus": self.env_cpus,
            "env_timeout": self.env_timeout,
            "max_env_restarts": self.max_env_restarts,
            "placement": self.placement,
            "devices": self.devices,
        }
        elsewhere = {name: value for name, value in train_arguments(RAY_DEFAULTS).items() if name in RAY_DEFAULTS}
        return {**self.args, **known, **{name: value for name, value in elsewhere.items() if name in self.args}}

    def _check_device(self) -> None:
        # Trials find the GPUs that they are given where those are, which need not be here.
        if not self.optimize_hyperparameters or self.study_options.gpus_per_trial <= 0:
            check_device(self.device)

    def _check_callbacks(self) -> None:
        for callback in self.callbacks:
            if not isinstance(callback, BaseCallback | pl.Callback):
                raise ConfigError(f"callbacks: {callback!r} is a callback neither of SB3 nor of Lightning")

    def _check_resumed(self) -> None:
        """Refuses what contradicts the run that is gone on with; the command line takes nearly all of that from the run."""
        if self._run is None or self.checkpoint is None:
            return
        saved, own = run_folder.read_arguments(self._run), to_plain(self.arguments())
        for name in ("algo", "env", "seed", "n_envs", "env_kwargs", "eval_env_kwargs"):
            # A seed of 0 may just not have been given.
            if (own[name] or None) != (saved.get(name) or None) and (own[name] or name != "seed"):
                raise ConfigError(f"{name} {own[name]!r} contradicts resume: the run {self._run.path} has {saved.get(name)!r}")
        if 0 < self.n_timesteps < int(self.checkpoint.name):
            raise ConfigError(f"-n {self.n_timesteps}: the run stands at {self.checkpoint.name} env steps already")

    def _check(self) -> None:
        """Refuses what can be seen to be wrong before anything is read or built."""
        self.ray_settings.make_importable()
        self._check_resumed()
        resolve_algorithm(self.algo)
        families.register_env(self.env_id, self.gym_packages)
        check_stepping(self)
        check_devices(self.devices, studies=self.optimize_hyperparameters)
        if self.async_eval and self.optimize_hyperparameters:
            raise ConfigError("--async-eval with a study: a trial goes on or ends by its evaluation, and so waits for it")
        self._check_callbacks()
        if self.num_threads > MAX_THREADS:
            raise ConfigError(f"--num-threads {self.num_threads}: at most {MAX_THREADS}")
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        if self.profiler is not None and self.profiler not in PROFILERS:
            raise unknown("profiler", self.profiler, PROFILERS)
        if self.given_n_envs is not None and self.given_n_envs < 1:
            raise ConfigError(f"n_envs must be at least 1, not {self.given_n_envs}")
        if self.n_eval_envs < 1 or self.n_eval_episodes < 1:
            raise ConfigError("n_eval_envs and n_eval_episodes must be at least 1")
        check_loggers([name for name in self.loggers if isinstance(name, str)])
        self._check_device()
        if self.is_warm_start:
            check_model_file(self.trained_agent, "-i")
            check_algorithm(self.trained_agent, self.algo, "-i")
        run_folder.check_writable(self.log_folder if self._run is None else self._run.path, "--log-folder")
        if self.tensorboard_log:
            run_folder.check_writable(self.tensorboard_log, "--tensorboard-log")
