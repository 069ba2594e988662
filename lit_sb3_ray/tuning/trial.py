"""One trial: an experiment that trains from evaluation to evaluation, keeps no run folder, and can be ended at any of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import sync_envs_normalization

from lit_sb3_ray.errors import NonFiniteError
from lit_sb3_ray.experiment.evaluations import (
    append_evaluation,
    cut_evaluations,
    read_evaluations,
    save_model,
    write_evaluations,
)
from lit_sb3_ray.experiment.loggers import attach_sb3_logger
from lit_sb3_ray.experiment.metrics import cut_metrics
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.lit.checkpoint import read_state, save_checkpoint
from lit_sb3_ray.lit.evaluation import Evaluation, evaluate, evaluation_seed
from lit_sb3_ray.lit.iteration import takes_masks
from lit_sb3_ray.lit.speed import fit_threads
from lit_sb3_ray.tuning.trial_maker import TELLS_ALL

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from lit_sb3_ray.experiment.manager import ExperimentManager

# Entry of a checkpoint: the report that it was taken after.
POINT = "point"


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

    def __init__(
        self,
        manager: ExperimentManager,
        marks: Sequence[int],
        stop: SignalStop,
        folder: Path | None = None,
        checkpoint: Path | None = None,
        logs: Path | None = None,
    ) -> None:
        """Builds envs and model.

        Args:
            manager: Made by `TrialMaker`.
            marks: Env steps at which evaluations are due, ascending, the last of them the budget.
            stop: Takes signals; it is pointed at this trial.
            folder: Where to keep the evaluations and the best model; None for nowhere.
            checkpoint: What `save` has written, to go on from.
            logs: The folder for what SB3's logger dumps, as `metrics.csv`; None for nowhere.

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
        self._logs = None if logs is None else RunFolder(logs, manager.env_id)
        self._best = -math.inf
        try:
            if checkpoint is not None:
                self.last = Point(**read_state(checkpoint)["extra"][POINT])
            self._continue_files(0 if self.last is None else self.last.num_timesteps)
            self._build()
            if self.last is not None:
                # Trains nothing, since that many env steps are done.
                self._trainer.fit(self.module, until=self.last.num_timesteps, ckpt_path=checkpoint)
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
            The report. A rollout longer than the time between evaluations skips those it passes. A trial that is done, as one
            seed's may be before the others', has nothing new to report.

        Raises:
            NonFiniteError: The training or the evaluation has given NaN or infinity.
            TrialStopped: A signal has come.
        """
        if self.last is not None and self.done:
            return self.last
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

    def save(self, folder: Path) -> None:
        """Writes a checkpoint to go on from; after at least one `advance`.

        Args:
            folder: Is made.
        """
        session = self.module.session
        assert session is not None, "a trial is saved after its first report"
        assert self.last is not None, "a trial is saved after its first report"
        save_checkpoint(folder, session, {POINT: asdict(self.last)})

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
        talks = manager.verbose >= TELLS_ALL
        if self._logs is not None:
            attach_sb3_logger(algorithm, self._logs, 1 if talks else 0)
        self._trainer = RLTrainer(
            max_steps=self.marks[-1],
            rl_callback=manager.create_callbacks(),
            log_interval=-1 if talks or self._logs is not None else None,
            use_masking=takes_masks(algorithm) and manager.uses_masking(env),
            fast=manager.fast,
            precision=manager.precision,
            callbacks=[*(item for item in manager.callbacks if not isinstance(item, BaseCallback)), self._stop],
        )
        self._check_stop()

    def _continue_files(self, reached: int) -> None:
        """Cuts what an earlier actor has written of this trial after its last checkpoint, or before any."""
        if self._logs is not None:
            self._logs.path.mkdir(parents=True, exist_ok=True)
            cut_metrics(self._logs.metrics, reached)
        if self._run is not None:
            cut_evaluations(self._run.evaluations, reached)
            self._best = max(map(fmean, read_evaluations(self._run.evaluations)["results"]), default=-math.inf)

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
