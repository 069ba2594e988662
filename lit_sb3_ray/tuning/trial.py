"""One trial: an experiment that trains from evaluation to evaluation, keeps no run folder, and can be ended at any of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import sync_envs_normalization

from lit_sb3_ray.errors import NonFiniteError
from lit_sb3_ray.experiment.evaluations import append_evaluation, read_evaluations, save_model, write_evaluations
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.lit.evaluation import Evaluation, evaluate, evaluation_seed
from lit_sb3_ray.lit.iteration import takes_masks
from lit_sb3_ray.lit.speed import fit_threads

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from lit_sb3_ray.experiment.manager import ExperimentManager

# From this verbosity on a trial's model tells what it does.
TELLS_ALL = 2


@dataclass(frozen=True)
class Point:
    """What a trial reports.

    Attributes:
        mark: Env steps at which the evaluation was due; every trial of a study has the same ones, so that they compare.
        num_timesteps: Env steps really done, up to one rollout more.
        mean_reward: Mean return.
        std_reward: Its standard deviation over the episodes.
    """

    mark: int
    num_timesteps: int
    mean_reward: float
    std_reward: float


def trial_settings(manager: ExperimentManager) -> dict[str, Any]:
    """Collects the settings that a study's manager hands on to its trials, by the constructor's names."""
    return {
        "args": None,
        "algo": manager.algo,
        "env_id": manager.env_id,
        "log_folder": manager.log_folder,
        "n_timesteps": manager.n_timesteps,
        "eval_freq": 0,
        "n_eval_episodes": manager.n_eval_episodes,
        "hyperparams": copy.deepcopy(manager.custom_hyperparams),
        "env_kwargs": manager.env_kwargs,
        "eval_env_kwargs": manager.eval_env_kwargs,
        "seed": manager.seed,
        "verbose": manager.verbose if manager.verbose >= TELLS_ALL else 0,
        "vec_env_type": manager.vec_env_type,
        "n_eval_envs": manager.n_eval_envs,
        "device": manager.device,
        "config": manager.config,
        "n_envs": manager.given_n_envs,
        "callbacks": copy.deepcopy(manager.callbacks),
        "fast": manager.fast,
        "precision": manager.precision,
        "num_threads": manager.num_threads,
        "gym_packages": manager.gym_packages,
    }


def trial_manager(manager: ExperimentManager, hyperparams: Mapping[str, Any]) -> ExperimentManager:
    """Makes the manager of one trial.

    Args:
        manager: The study's manager.
        hyperparams: The trial's hyperparameters, which go over the file's; those of the command line go over them.
    """
    made = type(manager)(**trial_settings(manager))
    made.default_vec_env_cls = manager.default_vec_env_cls
    made.vec_env_kwargs = manager.vec_env_kwargs
    made.trial_hyperparams = dict(hyperparams)
    return made


class TrialStopped(KeyboardInterrupt):
    """A signal has come; the trial is not finished."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by signal {signum}")
        self.signum = signum


class TrialRun:
    """A trial in progress: `advance()` trains to the next evaluation, until `done`; `close()` in any case.

    The training is that of a run with the same hyperparameters and seed, bit for bit.

    Attributes:
        manager: The trial's manager.
        module: Its model under Lightning.
        last: The last report.
    """

    def __init__(self, manager: ExperimentManager, marks: Sequence[int], stop: SignalStop, folder: Path | None = None) -> None:
        """Builds envs and model.

        Args:
            manager: Made by `trial_manager`.
            marks: Env steps at which evaluations are due, ascending, the last of them the budget.
            stop: Takes signals; it is pointed at this trial.
            folder: Where to keep the evaluations and the best model; None for nowhere.

        Raises:
            ConfigError: The hyperparameters do not suit the env.
        """
        self.manager = manager
        self.marks = tuple(marks)
        self.last: Point | None = None
        self._stop = stop
        self._envs: list[VecEnv] = []
        self._threads = torch.get_num_threads()
        self._run = None if folder is None else RunFolder(folder, manager.env_id)
        self._best = -math.inf
        try:
            self._build()
        except BaseException:  # Ctrl-C as well: it goes on, and leaves no env open.
            self.close()
            raise

    @property
    def done(self) -> bool:
        """Whether the budget is used up, or a callback has ended the training, and this has been reported."""
        if self.last is None:
            return False
        session = self.module.session
        return self.last.num_timesteps >= self.marks[-1] or (session is not None and session.done)

    def advance(self) -> Point:
        """Trains to the next evaluation that is due and evaluates.

        Returns:
            The report. A rollout longer than the time between evaluations skips those it passes.

        Raises:
            NonFiniteError: The training or the evaluation has given NaN or infinity.
            TrialStopped: A signal has come.
        """
        reached = self.module.num_timesteps
        due = next((mark for mark in self.marks if mark > reached), self.marks[-1])
        self._trainer.fit(self.module, until=due)
        self._check_stop()
        result = self._evaluate()
        self._check_stop()
        passed = [mark for mark in self.marks if mark <= self.module.num_timesteps]
        # A callback may have ended the training before the first mark.
        mark = passed[-1] if passed else self.marks[0]
        self.last = Point(mark, self.module.num_timesteps, result.mean_reward, result.std_reward)
        return self.last

    def close(self) -> None:
        """Closes the envs; a second time does nothing."""
        torch.set_num_threads(self._threads)
        while self._envs:
            self._envs.pop().close()

    def _build(self) -> None:
        manager = self.manager
        manager.read_hyperparameters()
        env = manager.create_envs(manager.n_envs, no_log=True)
        self._envs.append(env)
        self._eval_env = manager.create_envs(manager.n_eval_envs, eval_env=True)
        self._envs.append(self._eval_env)
        algorithm = manager.create_model(env)
        fit_threads(algorithm, manager.num_threads)
        self.module = RLModule(algorithm)
        self._stop.guard = self.module.guard
        self._trainer = RLTrainer(
            max_steps=self.marks[-1],
            rl_callback=manager.create_callbacks(),
            log_interval=-1 if manager.verbose >= TELLS_ALL else None,
            use_masking=takes_masks(algorithm) and manager.uses_masking(env),
            fast=manager.fast,
            precision=manager.precision,
            callbacks=[*(item for item in manager.callbacks if not isinstance(item, BaseCallback)), self._stop],
        )
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.signum is not None:
            raise TrialStopped(self._stop.signum)

    def _evaluate(self) -> Evaluation:
        algorithm, manager = self.module.algorithm, self.manager
        if algorithm.get_vec_normalize_env() is not None:
            sync_envs_normalization(self._envs[0], self._eval_env)
        result = evaluate(
            algorithm,
            self._eval_env,
            manager.n_eval_episodes,
            deterministic=manager.deterministic_eval,
            seed=evaluation_seed(manager.seed, algorithm.num_timesteps),
            use_masking=manager.hyperparams.use_masking is not False,
        )
        if not math.isfinite(result.mean_reward):
            raise NonFiniteError(f"the evaluation at {algorithm.num_timesteps:,} env steps gives {result.mean_reward}")
        if self._run is not None:
            self._keep(self._run, result)
        return result

    def _keep(self, run: RunFolder, result: Evaluation) -> None:
        run.path.mkdir(parents=True, exist_ok=True)
        history = read_evaluations(run.evaluations)
        append_evaluation(history, self.module.num_timesteps, result)
        write_evaluations(run.evaluations, history)
        if result.mean_reward > self._best:
            self._best = result.mean_reward
            save_model(self.module.algorithm, run.best, run.best_statistics)
