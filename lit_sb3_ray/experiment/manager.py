"""ExperimentManager: one unit of work, from hyperparameters to a saved agent."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, LogEveryNTimesteps
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.envs.exits import no_exit
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.async_evaluations import AsyncEvaluationCallback
from lit_sb3_ray.experiment.callbacks.stopping import hang_on_evaluations
from lit_sb3_ray.experiment.checkpoints import latest_checkpoint, rewind
from lit_sb3_ray.experiment.description import describe
from lit_sb3_ray.experiment.devices import device_of_each
from lit_sb3_ray.experiment.environments import ExperimentEnvs, close_env
from lit_sb3_ray.experiment.evaluations import EvaluationCallback, EvaluationPlan, save_model
from lit_sb3_ray.experiment.evaluator import EvaluatorRecipe
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.experiment.loggers import attach_sb3_logger
from lit_sb3_ray.experiment.models import make_model
from lit_sb3_ray.experiment.stepping import EnvSet
from lit_sb3_ray.experiment.training import train
from lit_sb3_ray.experiment.warm_start import warm_start
from lit_sb3_ray.lit.evaluation import evaluate, evaluation_seed

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.remote_evaluator import RemoteEvaluator
    from lit_sb3_ray.tuning.study import StudyResult

logger = logging.getLogger(__name__)


class ExperimentManager(ExperimentEnvs):
    """Reads hyperparameters, builds envs and model, trains, evaluates, saves, resumes.

        manager = ExperimentManager(None, "ppo", "CartPole-v1", "logs")
        model = manager.setup_experiment()
        manager.learn(model)
        manager.save_trained_model(model)

    Attributes:
        stop_signal: The signal that ended training, if one did.
        deterministic_eval: Whether evaluations play the policy's mode: everywhere but on Atari and MiniGrid.
    """

    def _begin(self) -> None:
        super()._begin()
        self.stop_signal: int | None = None
        self.deterministic_eval = not (self.is_atari(self.env_id) or self.is_minigrid(self.env_id))
        self._eval_env: VecEnv | RemoteEvaluator | None = None
        self._env: VecEnv | None = None
        self._model: BaseAlgorithm | None = None
        self._lock: RunLock | None = None
        self.rl_callbacks: list[BaseCallback] = []

    def describe(self) -> str:
        """The resolved configuration, the envs and what would be written, as YAML; builds and writes nothing."""
        return describe(self)

    # Model

    def create_model(self, env: VecEnv | None = None) -> BaseAlgorithm:
        """Makes a new model.

        Args:
            env: Its envs; None for those of the run, which are made if there are none yet.

        Raises:
            ConfigError: The hyperparameters do not suit the env.
        """
        resolved, env = self.hyperparams, self._training_env() if env is None else env
        options = {"seed": self.seed, "verbose": self.verbose, "device": self._learner_device()}
        model = make_model(resolved, env, options, self.num_threads, self.env_id)
        if self.checkpoint is not None:
            # The constructor has seeded the envs with the run's seed, and they would play its first episodes again.
            env.seed(self._env_seed())
        return model

    def load_trained_model(self) -> BaseAlgorithm:
        """Loads `trained_agent` for a warm start: its weights, with counters and schedules from the beginning.

        Raises:
            ConfigError: The file cannot be loaded.
        """
        options = {"seed": self.seed, "verbose": self.verbose, "device": self._learner_device()}
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
            self._check_evaluation_envs(self._env, self._eval_env)
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
        return hang_on_evaluations(made)

    # Training

    def learn(self, model: BaseAlgorithm) -> None:
        """Trains to the end of the budget, or until a signal, and takes a checkpoint there.

        Args:
            model: What `setup_experiment` returned.

        Raises:
            NonFiniteError: Training has diverged.
            LearnerError: One of several learners is lost.
            ExitError: What was trained with has called `sys.exit`.
        """
        self._lock = self._lock or RunLock(self.run.path)
        try:
            with no_exit("a callback, a wrapper or an environment"):
                self.stop_signal = train(self, model)
        finally:
            for env in (model.get_env(), self._eval_env):
                close_env(env)
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
            What the trial is worth by `trial_objective`.

        Raises:
            optuna.TrialPruned: The trial's pruner has ended it.
            NonFiniteError: Its training has diverged.
        """
        from lit_sb3_ray.tuning.own_study import objective

        return objective(self, trial)

    def hyperparameters_optimization(self) -> StudyResult:
        """Searches hyperparameters, and writes the table of trials and the best of them.

        Raises:
            ConfigError: Wrong settings, or a storage that cannot be opened.
        """
        from lit_sb3_ray.tuning.study import run_study

        return run_study(self)

    # Inside

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
            close_env(env)
        self._env = self._eval_env = None
        self._release()
        if self.checkpoint is None and self._run is not None:
            run_folder.remove(self._run)
            self._run = None

    def _evaluations(self) -> EvaluationCallback:
        """The evaluations on the way, with the envs or the actor that they are played in."""
        masking = self.hyperparams.use_masking is not False
        plan = EvaluationPlan(self.eval_freq, self.n_eval_episodes, self.deterministic_eval, self.seed, masking)
        if not self.async_eval:
            self._eval_env = self.create_envs(self.n_eval_envs, eval_env=True)
            return EvaluationCallback(self._eval_env, plan, self.run, verbose=self.verbose)
        from lit_sb3_ray.scale.connection import connect

        connect(self.ray_settings)
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

    def _learner_device(self) -> torch.device | str:
        return self.device if self.devices == 1 else device_of_each(self)

    def _training_env(self) -> VecEnv:
        if self._env is None:
            self._env = self.create_envs(self.n_envs)
        return self._env
