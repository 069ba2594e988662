"""ExperimentManager: one unit of work, from hyperparameters to a saved agent."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, LogEveryNTimesteps
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from lit_sb3_ray.config.algorithms import nearest_built_in, resolve_algorithm
from lit_sb3_ray.config.hyperparams import Hyperparams, merge, origins, resolve
from lit_sb3_ray.config.plain import copy_containers
from lit_sb3_ray.envs import families
from lit_sb3_ray.envs.candidates import playing_candidates
from lit_sb3_ray.envs.monitor import MonitorFiles
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.async_evaluations import AsyncEvaluationCallback
from lit_sb3_ray.experiment.checkpoints import latest_checkpoint, rewind
from lit_sb3_ray.experiment.description import describe
from lit_sb3_ray.experiment.entries import file_entry, saved_entry
from lit_sb3_ray.experiment.evaluations import EvaluationCallback, EvaluationPlan, save_model
from lit_sb3_ray.experiment.evaluator import EvaluatorRecipe
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.experiment.loggers import attach_sb3_logger
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.experiment.settings import ExperimentSettings
from lit_sb3_ray.experiment.stepping import EnvSet, Stepping, env_sets, plan
from lit_sb3_ray.experiment.training import train
from lit_sb3_ray.experiment.warm_start import warm_start, warm_statistics
from lit_sb3_ray.lit.evaluation import evaluate, evaluation_seed
from lit_sb3_ray.lit.refusals import reason, refusing
from lit_sb3_ray.lit.speed import construction_threads

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.remote_evaluator import RemoteEvaluator
    from lit_sb3_ray.tuning.study import StudyResult

logger = logging.getLogger(__name__)


class ExperimentManager(ExperimentSettings):
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
        trial_hyperparams: The hyperparameters of the trial that this experiment is, if it is one; they go over the file's.
        deterministic_eval: Whether evaluations play the policy's mode: everywhere but on Atari and MiniGrid.
    """

    default_vec_env_cls: type[VecEnv] | None = None

    def _begin(self) -> None:
        self.trial_hyperparams: dict[str, Any] | None = None
        self.n_envs = self.given_n_envs or 1
        self.saved_hyperparams: dict[str, Any] = {}
        self.vec_env_kwargs: dict[str, Any] = {}
        self._steppings: dict[EnvSet, Stepping] = {}
        self.stop_signal: int | None = None
        self.deterministic_eval = not (self.is_atari(self.env_id) or self.is_minigrid(self.env_id))
        self._resolved: Hyperparams | None = None
        self._eval_env: VecEnv | RemoteEvaluator | None = None
        self._env: VecEnv | None = None
        self._model: BaseAlgorithm | None = None
        self._lock: RunLock | None = None
        self.rl_callbacks: list[BaseCallback] = []
        self.resumed_extra: dict[str, Any] = {}

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
            raw, where = saved_entry(self)
            overrides = None
        else:
            entry, where = file_entry(self)
            trial = self._trial()
            raw = merge(entry, trial, self.custom_hyperparams)
            overrides = self.custom_hyperparams
        resolved = resolve(raw, self.algo, where, n_timesteps=self.n_timesteps, sources=origins(trial, overrides))
        self._resolved = resolved
        self.saved_hyperparams = resolved.saved
        self.n_envs = self.given_n_envs or resolved.n_envs
        self.env_spec(eval_env=False).check()
        self.env_spec(eval_env=True).check()
        return copy_containers(raw), dict(resolved.saved)

    def entry(self) -> dict[str, Any]:
        """The file's hyperparameters for the env, unprocessed."""
        return file_entry(self)[0]

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
        files = None if eval_env or no_log else MonitorFiles(self.run.path, self.resumed_extra.get("monitor"))
        stepping = self._stepping_of(EnvSet(n_envs, eval_env))
        return build_vec_env(
            self._playing_spec(n_envs) if not eval_env else self.env_spec(eval_env=True),
            n_envs,
            seed=evaluation_seed(self.seed, 0) if eval_env else self._env_seed(),
            vec_env_cls=stepping.vec_env_cls,
            vec_env_kwargs=stepping.kwargs,
            monitor=files,
            **self._env_stack(eval_env),
        )

    def uses_masking(self, env: VecEnv | None) -> bool:
        """Whether training asks the envs for action masks: as the hyperparameters say, else if they have any."""
        asked = self.hyperparams.use_masking
        return asked if asked is not None else env is not None and env.has_attr("action_masks")

    # Model

    def create_model(self, env: VecEnv | None = None) -> BaseAlgorithm:
        """Makes a new model.

        Args:
            env: Its envs; None for those of the run, which are made if there are none yet.

        Raises:
            ConfigError: The hyperparameters do not suit the env.
        """
        resolved, env = self.hyperparams, self._training_env() if env is None else env
        kwargs = copy_containers(resolved.model_kwargs)
        if resolved.noise is not None:
            if not isinstance(env.action_space, spaces.Box):
                raise ConfigError(f"noise_type needs continuous actions, and {self.env_id} has {env.action_space}")
            kwargs["action_noise"] = resolved.noise.build(int(np.prod(env.action_space.shape)))
        options = {"seed": self.seed, "verbose": self.verbose, "device": self.device, **kwargs}
        with refusing(f"{self.algo} on {self.env_id}"), construction_threads(self.num_threads):
            model: BaseAlgorithm = resolved.algo_class(policy=resolved.policy, env=env, **options)
        if self.checkpoint is not None:
            # The constructor has seeded the envs with the run's seed, and they would play its first episodes again.
            env.seed(self._env_seed())
        return model

    def load_trained_model(self) -> BaseAlgorithm:
        """Loads `trained_agent` for a warm start: its weights, with counters and schedules from the beginning.

        Raises:
            ConfigError: The file cannot be loaded.
        """
        options = {"seed": self.seed, "verbose": self.verbose, "device": self.device}
        buffers = {"truncate_last_trajectory": self.truncate_last_trajectory}
        return warm_start(Path(self.trained_agent), self.hyperparams, self._training_env(), options, **buffers)

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
        self.create_log_folder()
        self._lock = self._lock or RunLock(self.run.path)
        try:
            if self.checkpoint is not None:
                # Whoever held the lock until now may have gone on since.
                self.checkpoint = latest_checkpoint(self.run)
                self.resumed_extra = rewind(self.run, self.checkpoint)
            self.rl_callbacks = self.create_callbacks()
            model = self.load_trained_model() if self.is_warm_start else self.create_model()
        except BaseException:  # Ctrl-C as well: whatever it was goes on, and leaves no env open and no empty run.
            self._abandon()
            raise
        self._model = model
        attach_sb3_logger(model, self.run, self.verbose)
        run_folder.write_settings(self.run, self.saved_hyperparams, self.arguments())
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
            made.append(self._evaluations())
        return made

    # Training

    def learn(self, model: BaseAlgorithm) -> None:
        """Trains to the end of the budget, or until a signal, and takes a checkpoint there.

        Args:
            model: What `setup_experiment` returned.

        Raises:
            NonFiniteError: Training has diverged.
        """
        self._lock = self._lock or RunLock(self.run.path)
        try:
            self.stop_signal = train(self, model)
        finally:
            for env in (model.get_env(), self._eval_env):
                _close(env)
            self._eval_env = None
            self._release()

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
            training, evaluation = self._model.get_vec_normalize_env(), unwrap_vec_normalize(env)
            if training is not None and evaluation is not None:
                evaluation.obs_rms = training.obs_rms
            seed = evaluation_seed(self.seed, self._model.num_timesteps)
            options = {"deterministic": self.deterministic_eval, "use_masking": self.hyperparams.use_masking is not False}
            result = evaluate(self._model, env, self.n_eval_episodes, seed=seed, **options)
        finally:
            env.close()
        return result.mean_reward, result.std_reward

    # Studies

    def objective(self, trial: Any) -> float:
        """Carries one trial of a study out.

        Args:
            trial: An `optuna.Trial`.

        Returns:
            The mean return of its last evaluation.

        Raises:
            optuna.TrialPruned: The trial's pruner has ended it.
            NonFiniteError: Its training has diverged.
        """
        from lit_sb3_ray.tuning.trial import objective

        return objective(self, trial)

    def hyperparameters_optimization(self) -> StudyResult:
        """Searches hyperparameters, and writes the table of trials and the best of them.

        Raises:
            ConfigError: Wrong settings, or a storage that cannot be opened.
        """
        from lit_sb3_ray.tuning.study import run_study

        return run_study(self)

    def load_trial(
        self,
        storage: str | int | None = None,
        study_name: str | None = None,
        trial_id: int | None = None,
        convert: bool = True,
    ) -> dict[str, Any]:
        """Loads a trial of a study.

        Args:
            storage: The study's storage; None for the manager's. A number alone is a `trial_id`.
            study_name: The study's name; None for the manager's.
            trial_id: The trial's number, from 0; None for the best trial.
            convert: Make hyperparameters of what the trial has drawn.

        Returns:
            The trial's hyperparameters, to go over the file's; or what it has drawn, by the names of the search space.

        Raises:
            ConfigError: There is no such storage, study or trial.
        """
        from lit_sb3_ray.tuning.rows import HYPERPARAMS
        from lit_sb3_ray.tuning.space.conversion import convert as to_hyperparams
        from lit_sb3_ray.tuning.storage import find_trial

        if isinstance(storage, int):
            storage, trial_id = None, storage
        trial = find_trial(storage or self.storage, study_name or self.study_name, trial_id, self.algo)
        if not convert:
            return trial.params
        if HYPERPARAMS in trial.user_attrs:
            # A study's budget is often a short one; how long to train is for the file or the command line to say.
            return {name: value for name, value in trial.user_attrs[HYPERPARAMS].items() if name != "n_timesteps"}
        return to_hyperparams(self.algo, trial.params, self.entry(), self.custom_hyperparams, self.given_n_envs)

    # Families of envs

    entry_point = staticmethod(families.entry_point)
    is_atari = staticmethod(families.is_atari)
    is_minigrid = staticmethod(families.is_minigrid)
    is_bullet = staticmethod(families.is_bullet)
    is_robotics_env = staticmethod(families.is_robotics_env)
    is_panda_gym = staticmethod(families.is_panda_gym)

    # Inside

    def _trial(self) -> dict[str, Any] | None:
        """The hyperparameters of the trial that this is or that is asked for; a study named without a trial means its best."""
        asked = self.trial_id is not None or self.storage or self.study_name
        if self.trial_hyperparams is not None or self.optimize_hyperparameters or not asked:
            return self.trial_hyperparams
        return self.load_trial(self.storage, self.study_name, self.trial_id)

    def env_spec(self, eval_env: bool) -> EnvSpec:
        """The recipe of one env, of training or of evaluation."""
        resolved = self.hyperparams
        return EnvSpec(
            self.env_id,
            self.get_env_kwargs(eval_env),
            resolved.env_wrappers,
            families.monitor_defaults(self.env_id, resolved.monitor_kwargs),
            self.gym_packages,
            where="env_kwargs",
        )

    def _check(self) -> None:
        if self.checkpoint is not None:
            try:
                resolve_algorithm(self.algo)
            except ConfigError as error:
                raise ConfigError(f"{error}; start --resume in the folder where the run was started") from error
        super()._check()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _abandon(self) -> None:
        """Leaves nothing of a run that could not be set up: no open env, no empty folder with a number."""
        for env in (self._env, self._eval_env):
            _close(env)
        self._env = self._eval_env = None
        self._release()
        if self.checkpoint is None and self._run is not None:
            run_folder.remove(self._run)
            self._run = None

    def _playing_spec(self, n_envs: int) -> EnvSpec:
        """The recipe of one of some training envs; ARS lets candidates play in several of them at the same time."""
        spec = self.env_spec(eval_env=False)
        is_shared = n_envs > 1 and nearest_built_in(self.algo) == "ars"
        return playing_candidates(spec, self._env_stack(eval_env=False)) if is_shared else spec

    def _env_stack(self, eval_env: bool) -> dict[str, Any]:
        """The vectorised wrappers around the envs, as `build_vec_env` takes them."""
        resolved = self.hyperparams
        statistics = warm_statistics(self.trained_agent, self.env_id) if self.is_warm_start else None
        return {
            "vec_env_wrappers": resolved.vec_env_wrappers,
            "normalize": resolved.normalize,
            "training": not eval_env,
            "frame_stack": resolved.frame_stack,
            "stats_path": None if statistics is None else statistics.absolute(),
        }

    def _evaluations(self) -> EvaluationCallback:
        """The evaluations on the way, with the envs or the actor that they are played in."""
        masking = self.hyperparams.use_masking is not False
        plan = EvaluationPlan(self.eval_freq, self.n_eval_episodes, self.deterministic_eval, self.seed, masking)
        if not self.async_eval:
            self._eval_env = self.create_envs(self.n_eval_envs, eval_env=True)
            return EvaluationCallback(self._eval_env, plan, self.run, verbose=self.verbose)
        # Before the actor takes its CPU, all are counted together.
        self._stepping_of(EnvSet(self.n_envs, is_evaluation=False))
        recipe = EvaluatorRecipe(
            self.env_spec(eval_env=True),
            self.n_eval_envs,
            {"seed": evaluation_seed(self.seed, 0), **self._env_stack(eval_env=True)},
            self.hyperparams,
            plan,
            self.default_vec_env_cls,
        )
        callback = AsyncEvaluationCallback.start(recipe, self.run, self.verbose)
        self._eval_env = callback.evaluator
        return callback

    def _stepping_of(self, envs: EnvSet) -> Stepping:
        """What steps some envs; decided once for all that the experiment has, before any of them is built."""
        if envs not in self._steppings:
            sets = env_sets(self)
            self._steppings.update(plan(self, sets if envs in sets else (envs,)))
        return self._steppings[envs]

    def _env_seed(self) -> int:
        """The seed of the training envs; a resumed run draws another, or it would play the same episodes again."""
        if self.checkpoint is None:
            return self.seed
        return int(np.random.SeedSequence([self.seed, 0x5E5E, int(self.checkpoint.name)]).generate_state(1)[0] // 2)

    def _training_env(self) -> VecEnv:
        if self._env is None:
            self._env = self.create_envs(self.n_envs)
        return self._env


def _close(env: VecEnv | RemoteEvaluator | None) -> None:
    if env is None:
        return
    try:
        env.close()
    except Exception as error:  # An env may raise anything, and what was trained is worth more than its tidy end.
        logger.warning("An environment cannot be closed: %s", reason(error), exc_info=True)
