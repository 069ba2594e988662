"""ExperimentManager: one unit of work, from hyperparameters to a saved agent."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, LogEveryNTimesteps
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import Hyperparams, merge, origins, resolve, select_entry
from lit_sb3_ray.config.plain import copy_containers
from lit_sb3_ray.envs import families
from lit_sb3_ray.envs.monitor import MonitorFiles, find_recorder
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.checkpoints import CheckpointPlan, CheckpointSaver, latest_checkpoint, rewind
from lit_sb3_ray.experiment.description import describe
from lit_sb3_ray.experiment.evaluations import EvaluationCallback, EvaluationPlan, save_model
from lit_sb3_ray.experiment.loggers import attach_sb3_logger, lightning_loggers, tensorboard_folder
from lit_sb3_ray.experiment.provenance import provenance
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.lit.evaluation import evaluate, evaluation_seed
from lit_sb3_ray.lit.iteration import takes_masks
from lit_sb3_ray.lit.loggers import WandbSettings, check_loggers
from lit_sb3_ray.lit.speed import fit_threads
from lit_sb3_ray.lit.trainer import PRECISIONS

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from pytorch_lightning.loggers import Logger

logger = logging.getLogger(__name__)

VEC_ENV_TYPES = ("auto", "dummy", "ray", "subproc")
PROFILERS = ("simple", "advanced", "pytorch")


class ExperimentManager:
    """Reads hyperparameters, builds envs and model, trains, evaluates, saves, resumes.

        manager = ExperimentManager(None, "ppo", "CartPole-v1", "logs")
        model = manager.setup_experiment()
        manager.learn(model)
        manager.save_trained_model(model)

    Attributes:
        default_vec_env_cls: Set in a subclass to step envs with another `VecEnv` class.
        n_envs: Training envs.
        saved_hyperparams: The unprocessed hyperparameters, once read.
        stop_signal: The signal that ended training, if one did.
        deterministic_eval: Whether evaluations play the policy's mode: everywhere but on Atari and MiniGrid.
    """

    default_vec_env_cls: type[VecEnv] | None = None

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
        num_threads: int = -1,
        gym_packages: Sequence[str] = (),
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
            num_threads: torch's threads; below 1 as many as the network is worth.
            gym_packages: Modules to import for their envs.

        Raises:
            ConfigError: Any of it is wrong.
        """
        self.algo, self.env_id, self.log_folder, self.tensorboard_log = algo, env_id, log_folder, tensorboard_log
        self.n_timesteps, self.eval_freq, self.n_eval_episodes, self.save_freq = (
            n_timesteps,
            eval_freq,
            n_eval_episodes,
            save_freq,
        )
        self.custom_hyperparams, self.env_kwargs, self.eval_env_kwargs = hyperparams, env_kwargs or {}, eval_env_kwargs
        self.trained_agent, self.truncate_last_trajectory = trained_agent, truncate_last_trajectory
        self.optimize_hyperparameters, self.storage, self.study_name = optimize_hyperparameters, storage, study_name
        self.n_trials, self.max_total_trials, self.n_jobs = n_trials, max_total_trials, n_jobs
        self.sampler, self.pruner, self.optimization_log_path = sampler, pruner, optimization_log_path
        self.n_startup_trials, self.n_evaluations, self.no_optim_plots = n_startup_trials, n_evaluations, no_optim_plots
        self.uuid_str, self.seed, self.log_interval, self.verbose = uuid_str, seed, log_interval, verbose
        self.save_replay_buffer, self.vec_env_type, self.n_eval_envs = save_replay_buffer, vec_env_type, n_eval_envs
        self.device, self.config, self.show_progress, self.trial_id = device, config, show_progress, trial_id
        self.callbacks, self.wandb, self.fast, self.precision = list(callbacks), wandb, fast, precision
        self.profiler, self.keep_checkpoints, self.log_freq = profiler, keep_checkpoints, log_freq
        self.num_threads, self.gym_packages = num_threads, tuple(gym_packages)
        self.loggers = list(dict.fromkeys([*(loggers or ()), *(["tensorboard"] if tensorboard_log else [])]))
        self.args = vars(args) if isinstance(args, argparse.Namespace) else dict(args or {})
        self.given_n_envs = n_envs
        self.n_envs = n_envs or 1
        self.saved_hyperparams: dict[str, Any] = {}
        self.vec_env_kwargs: dict[str, Any] = {}
        self.stop_signal: int | None = None
        self.checkpoint: Path | None = None
        self._resolved: Hyperparams | None = None
        self._run: RunFolder | None = None
        self._eval_env: VecEnv | None = None
        self._env: VecEnv | None = None
        self._model: BaseAlgorithm | None = None
        self._run_callbacks: list[BaseCallback] = []
        self._extra: dict[str, Any] = {}
        if resume:
            self._run = run_folder.open_run(resume)
            self.checkpoint = latest_checkpoint(self._run)
        self._check()
        self.deterministic_eval = not (self.is_atari(env_id) or self.is_minigrid(env_id))

    # Settings

    def read_hyperparameters(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reads the hyperparameters: the file's entry, over it a trial's, over both those given.

        Returns:
            Two copies: one to work on, and the one to be saved, sorted by key.

        Raises:
            ConfigError: The file, the entry, or a value in it is wrong.
        """
        trial = None
        if self.checkpoint is not None:
            raw = run_folder.read_hyperparameters(self.run)
            where, overrides = str(self.run.settings / "config.yml"), None
        else:
            source = read_entries(self.config, self.algo)
            entry, key = select_entry(source, self.env_id, self.is_atari(self.env_id))
            if self.trial_id is not None:
                trial = self.load_trial(self.storage, self.study_name, self.trial_id)
            raw = merge(entry, trial, self.custom_hyperparams)
            where, overrides = f"{source.label}, entry {key}", self.custom_hyperparams
        resolved = resolve(raw, self.algo, where, n_timesteps=self.n_timesteps, sources=origins(trial, overrides))
        self._resolved = resolved
        self.saved_hyperparams = resolved.saved
        self.n_envs = self.given_n_envs or resolved.n_envs
        self._env_spec(eval_env=False).check()
        self._env_spec(eval_env=True).check()
        return copy_containers(raw), dict(resolved.saved)

    @property
    def hyperparams(self) -> Hyperparams:
        """The resolved hyperparameters."""
        if self._resolved is None:
            self.read_hyperparameters()
        assert self._resolved is not None
        return self._resolved

    def get_env_kwargs(self, eval_env: bool = False) -> dict[str, Any]:
        """The env's constructor arguments: the file's, over them those given.

        Args:
            eval_env: For evaluation envs, whose own arguments stand in for those of training if there are any.
        """
        given = self.eval_env_kwargs if eval_env and self.eval_env_kwargs else self.env_kwargs
        return {**self.hyperparams.env_kwargs, **given}

    def describe(self) -> str:
        """The resolved configuration, the envs and what would be written, as YAML; builds and writes nothing."""
        return describe(self)

    # Folders

    @property
    def run(self) -> RunFolder:
        """The run folder; claimed, that is created, when first asked for."""
        if self._run is None:
            self._run = run_folder.claim(self.log_folder, self.algo, self.env_id, self.uuid_str)
        return self._run

    @property
    def save_path(self) -> str:
        """The run folder's path."""
        return str(self.run.path)

    @property
    def params_path(self) -> str:
        """The path of the run's settings."""
        return str(self.run.settings)

    def create_log_folder(self) -> None:
        """Makes the run folder."""
        self.run.settings.mkdir(parents=True, exist_ok=True)

    # Envs

    def create_envs(self, n_envs: int, eval_env: bool = False, no_log: bool = False) -> VecEnv:
        """Builds envs with everything around them.

        Args:
            n_envs: How many.
            eval_env: For evaluation: no monitor files, statistics frozen, rewards as they are.
            no_log: No monitor files.

        Returns:
            The outermost wrapper.
        """
        resolved = self.hyperparams
        files = None if eval_env or no_log else MonitorFiles(self.run.path, self._extra.get("monitor"))
        return build_vec_env(
            self._env_spec(eval_env),
            n_envs,
            seed=evaluation_seed(self.seed, 0) if eval_env else self._env_seed(),
            vec_env_cls=self.default_vec_env_cls or DummyVecEnv,
            vec_env_kwargs=self.vec_env_kwargs,
            vec_env_wrappers=resolved.vec_env_wrappers,
            normalize=resolved.normalize,
            training=not eval_env,
            frame_stack=resolved.frame_stack,
            stats_path=self._warm_statistics(),
            monitor=files,
        )

    # Model

    def create_model(self) -> BaseAlgorithm:
        """Makes a new model, and its envs if there are none yet.

        Raises:
            ConfigError: The hyperparameters do not suit the env.
        """
        resolved, env = self.hyperparams, self._training_env()
        kwargs = copy_containers(resolved.model_kwargs)
        if resolved.noise is not None:
            if not isinstance(env.action_space, spaces.Box):
                raise ConfigError(f"noise_type needs continuous actions, and {self.env_id} has {env.action_space}")
            kwargs["action_noise"] = resolved.noise.build(int(np.prod(env.action_space.shape)))
        model: BaseAlgorithm = resolved.algo_class(
            policy=resolved.policy, env=env, seed=self.seed, verbose=self.verbose, device=self.device, **kwargs
        )
        return model

    def load_trained_model(self) -> BaseAlgorithm:
        """Loads `trained_agent` for a warm start: its weights, with counters and schedules from the beginning.

        Raises:
            ConfigError: The file cannot be loaded.
        """
        path = Path(self.trained_agent)
        logger.info("Warm start from %s: counters and schedules begin anew (--resume continues a run instead)", path)
        kwargs = {name: value for name, value in self.hyperparams.model_kwargs.items() if name != "policy_kwargs"}
        options = {"seed": self.seed, "verbose": self.verbose, "tensorboard_log": None, **copy_containers(kwargs)}
        try:
            model: BaseAlgorithm = self.hyperparams.algo_class.load(
                path, env=self._training_env(), device=self.device, **options
            )
        except (OSError, ValueError, KeyError, AssertionError) as error:
            raise ConfigError(f"-i {self.trained_agent!r} cannot be loaded: {' '.join(str(error).split())}") from error
        buffer = path.with_name(run_folder.FINAL_BUFFER)
        if buffer.exists() and hasattr(model, "load_replay_buffer"):
            model.load_replay_buffer(buffer, truncate_last_traj=self.truncate_last_trajectory)
        return model

    def setup_experiment(self) -> BaseAlgorithm | None:
        """Reads hyperparameters, makes folder, callbacks, envs and model, and saves the settings.

        Returns:
            The model; None when hyperparameters are to be optimised.

        Raises:
            ConfigError: Bad input; nothing has been written then.
        """
        self.read_hyperparameters()
        if self.optimize_hyperparameters:
            return None
        if self.checkpoint is not None:
            self._extra = rewind(self.run, self.checkpoint)
        self.create_log_folder()
        self._run_callbacks = self.create_callbacks()
        model = self.load_trained_model() if self.trained_agent else self.create_model()
        self._model = model
        attach_sb3_logger(model, self.run, self.verbose)
        run_folder.write_settings(self.run, self.saved_hyperparams, self._arguments())
        if self.checkpoint is None:
            told = provenance(self.seed, str(model.device), torch.get_num_threads())
            run_folder.write_yaml(self.run.path / "provenance.yml", told)
        return model

    def create_callbacks(self) -> list[BaseCallback]:
        """Makes the hyperparameters' callbacks, the given ones, and the evaluation with its envs.

        Returns:
            SB3 callbacks, in the order they are called.
        """
        made = [item if isinstance(item, BaseCallback) else item[0](**item[1]) for item in self.hyperparams.callbacks]
        made += [callback for callback in self.callbacks if isinstance(callback, BaseCallback)]
        if self.log_freq > 0:
            made.append(LogEveryNTimesteps(self.log_freq))
        if self.eval_freq > 0:
            self._eval_env = self.create_envs(self.n_eval_envs, eval_env=True)
            made.append(EvaluationCallback(self._eval_env, self._evaluation_plan(), self.run, verbose=self.verbose))
        return made

    # Training

    def learn(self, model: BaseAlgorithm) -> None:
        """Trains to the end of the budget, or until a signal, and takes a checkpoint there.

        Args:
            model: What `setup_experiment` returned.

        Raises:
            NonFiniteError: Training has diverged.
        """
        module = RLModule(model)
        module.extra = self._checkpoint_extra
        saver = CheckpointSaver(self.run, CheckpointPlan(self.save_freq, self.keep_checkpoints), self._checkpoint_extra)
        threads = torch.get_num_threads()
        fit_threads(model, self.num_threads)
        try:
            with SignalStop(module.guard) as signals:
                trainer = self._trainer(model, [signals, saver])
                trainer.fit(module, ckpt_path=self.checkpoint)
                if module.session is not None:
                    saver.save(module.session)
            self.stop_signal = signals.signum
        finally:
            torch.set_num_threads(threads)
            for env in (model.get_env(), self._eval_env):
                if env is not None:
                    env.close()
            self._eval_env = None

    def save_trained_model(self, model: BaseAlgorithm) -> None:
        """Writes the final model, its statistics, and the replay buffer if it is wanted.

        Args:
            model: The trained model.
        """
        logger.info("Saving to %s", self.save_path)
        save_model(model, self.run.model, self.run.statistics)
        if self.save_replay_buffer and getattr(model, "replay_buffer", None) is not None:
            run_folder.replace_file(self.run.buffer, model.save_replay_buffer)  # type: ignore[attr-defined]

    def final_evaluation(self) -> tuple[float, float] | None:
        """Evaluates the model as it is now, in fresh envs.

        Returns:
            Mean and standard deviation of the returns of `n_eval_episodes` episodes; None when there is no model or
            evaluations are off.
        """
        if self._model is None or self.eval_freq < 1:
            return None
        env = self.create_envs(self.n_eval_envs, eval_env=True)
        try:
            training, evaluation = self._model.get_vec_normalize_env(), _normalize_of(env)
            if training is not None and evaluation is not None:
                evaluation.obs_rms = training.obs_rms
            seed = evaluation_seed(self.seed, self._model.num_timesteps)
            options = {"deterministic": self.deterministic_eval, "use_masking": self.hyperparams.use_masking is not False}
            result = evaluate(self._model, env, self.n_eval_episodes, seed=seed, **options)
        finally:
            env.close()
        return result.mean_reward, result.std_reward

    # Families of envs

    entry_point = staticmethod(families.entry_point)
    is_atari = staticmethod(families.is_atari)
    is_minigrid = staticmethod(families.is_minigrid)
    is_bullet = staticmethod(families.is_bullet)
    is_robotics_env = staticmethod(families.is_robotics_env)
    is_panda_gym = staticmethod(families.is_panda_gym)

    # Inside

    def _check(self) -> None:
        """Refuses what can be seen to be wrong before anything is read or built."""
        resolve_algorithm(self.algo)
        families.register_env(self.env_id, self.gym_packages)
        if self.vec_env_type not in VEC_ENV_TYPES:
            raise unknown("vec_env_type", self.vec_env_type, VEC_ENV_TYPES)
        if self.vec_env_type in ("ray", "subproc"):
            logger.warning(
                "vec_env_type %r: Ray actors for envs are not in this version; envs run in-process", self.vec_env_type
            )
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        if self.profiler is not None and self.profiler not in PROFILERS:
            raise unknown("profiler", self.profiler, PROFILERS)
        if self.given_n_envs is not None and self.given_n_envs < 1:
            raise ConfigError(f"n_envs must be at least 1, not {self.given_n_envs}")
        if self.n_eval_envs < 1 or self.n_eval_episodes < 1:
            raise ConfigError("n_eval_envs and n_eval_episodes must be at least 1")
        check_loggers([name for name in self.loggers if isinstance(name, str)])
        if self.trained_agent and not (self.trained_agent.endswith(".zip") and Path(self.trained_agent).is_file()):
            raise ConfigError(f"-i {self.trained_agent!r} is no .zip file")
        run_folder.check_writable(self.log_folder if self._run is None else self._run.path)

    def _env_spec(self, eval_env: bool) -> EnvSpec:
        resolved = self.hyperparams
        return EnvSpec(
            self.env_id,
            self.get_env_kwargs(eval_env),
            resolved.env_wrappers,
            families.monitor_defaults(self.env_id, resolved.monitor_kwargs),
            self.gym_packages,
            where="env_kwargs",
        )

    def _env_seed(self) -> int:
        """The seed of the training envs; a resumed run draws another, or it would play the same episodes again."""
        if self.checkpoint is None:
            return self.seed
        return int(np.random.SeedSequence([self.seed, 0x5E5E, int(self.checkpoint.name)]).generate_state(1)[0] // 2)

    def _warm_statistics(self) -> Path | None:
        """Statistics of the model that is a warm start."""
        if not self.trained_agent:
            return None
        model = Path(self.trained_agent)
        path = RunFolder(model.parent, self.env_id).statistics_of(model)
        return path if path.exists() else None

    def _training_env(self) -> VecEnv:
        if self._env is None:
            self._env = self.create_envs(1 if self.algo == "ars" else self.n_envs)
        return self._env

    def _evaluation_plan(self) -> EvaluationPlan:
        masking = self.hyperparams.use_masking is not False
        return EvaluationPlan(self.eval_freq, self.n_eval_episodes, self.deterministic_eval, self.seed, masking)

    def _uses_masking(self, env: VecEnv | None) -> bool:
        asked = self.hyperparams.use_masking
        return asked if asked is not None else env is not None and env.has_attr("action_masks")

    def _arguments(self) -> dict[str, Any]:
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
        }
        return {**self.args, **known}

    def _checkpoint_extra(self) -> dict[str, Any]:
        assert self._model is not None
        env = self._model.get_env()
        recorder = None if env is None else find_recorder(env)
        offsets = None if recorder is None else recorder.offsets()
        return {"monitor": offsets, "tensorboard": self._extra.get("tensorboard")}

    def _trainer(self, model: BaseAlgorithm, own: list[pl.Callback]) -> RLTrainer:
        if "tensorboard" not in self._extra:
            self._extra["tensorboard"] = str(tensorboard_folder(model, self.run, self.tensorboard_log))
        resumed_at = None if self.checkpoint is None else int(self.checkpoint.name)
        loggers = lightning_loggers(self.loggers, self.run, Path(self._extra["tensorboard"]), self.wandb, resumed_at)
        given = [callback for callback in self.callbacks if not isinstance(callback, BaseCallback)]
        return RLTrainer(
            max_steps=self.hyperparams.n_timesteps,
            run_name=self.run.name,
            rl_callback=self._run_callbacks,
            log_interval=None if self.log_freq > 0 or self.log_interval < -1 else self.log_interval or -1,
            use_masking=takes_masks(model) and self._uses_masking(model.get_env()),
            fast=self.fast,
            precision=self.precision,
            callbacks=[*given, *own],
            logger=loggers,
            profiler=_profiler(self.profiler, self.run.path),
            enable_progress_bar=self.show_progress,
            default_root_dir=str(self.run.path),
        )


def _profiler(name: str | None, folder: Path) -> Any:
    if name is None:
        return None
    from pytorch_lightning import profilers

    made = {"simple": profilers.SimpleProfiler, "advanced": profilers.AdvancedProfiler, "pytorch": profilers.PyTorchProfiler}
    return made[name](dirpath=folder, filename="profile")


def _normalize_of(env: VecEnv) -> Any:
    from stable_baselines3.common.vec_env import unwrap_vec_normalize

    return unwrap_vec_normalize(env)
