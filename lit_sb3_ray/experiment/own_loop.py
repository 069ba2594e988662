"""Training through an algorithm's own `learn()`, for those whose loop cannot be driven in iterations.

SB3's loops call `on_rollout_start` where one iteration has ended and the next begins. That is the boundary at which
checkpoints are taken and stops acted on; a loop that never calls it has one at every env step.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.profilers import PassThroughProfiler
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from lit_sb3_ray.config.model import learn_takes
from lit_sb3_ray.experiment.checkpoints import CheckpointSaver
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.lit.candidates import candidate_workers
from lit_sb3_ray.lit.checkpoint import restore_algorithm, restore_session
from lit_sb3_ray.lit.finite import check_finite
from lit_sb3_ray.lit.loggers import LightningWriter
from lit_sb3_ray.lit.stop import Interrupted

logger = logging.getLogger(__name__)


class Boundaries(CallbackList):
    """A training through `learn()`: its callbacks, and what happens at each boundary between two iterations.

    Attributes:
        iteration: Iterations done.
    """

    def __init__(
        self, callbacks: list[BaseCallback], module: RLModule, saver: CheckpointSaver, checkpoint: Path | None = None
    ) -> None:
        """Prepares training.

        Args:
            callbacks: The run's callbacks.
            module: The module around the algorithm, for its guard.
            saver: Takes the checkpoints.
            checkpoint: The one to go on from, for the callbacks' states and the random generators.
        """
        super().__init__(callbacks)
        self.module = module
        self.saver = saver
        self.checkpoint = checkpoint
        self.iteration = 0
        self._has_rollouts = False
        self._begun = 0.0

    @property
    def algorithm(self) -> BaseAlgorithm:
        """The algorithm being trained."""
        return self.module.algorithm

    @property
    def callback(self) -> BaseCallback:
        """The callbacks, as one."""
        return self

    def state_dict(self) -> dict[str, object]:
        """Nothing: the callbacks keep their own, and the checkpoint the iteration."""
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Takes nothing."""

    def end_iteration(self) -> None:
        """Counts the iteration that was under way, looks at what it made, and saves if it is time.

        Raises:
            NonFiniteError: A loss or a weight has become NaN or infinite.
        """
        guard = self.module.guard
        if guard.running:
            guard.running = False
            guard.seconds = time.monotonic() - self._begun
            self.iteration += 1
            check_finite(self.algorithm, self.iteration)
        if not guard.requested and self.saver.save_if_due(self):
            guard.stale = True

    def stop(self) -> None:
        """Ends a training that was interrupted; one that was in the middle of an iteration goes back to a boundary."""
        guard = self.module.guard
        guard.cut, guard.running = guard.running, False
        if guard.cut:
            self.module.go_back(self)
        self.on_training_end()

    def _on_training_start(self) -> None:
        super()._on_training_start()
        if self.checkpoint is not None:
            restore_session(self.checkpoint, self)
        self.saver.begin(self.algorithm.num_timesteps)

    def _on_rollout_start(self) -> None:
        self._has_rollouts = True
        self._pass()
        super()._on_rollout_start()

    def _on_step(self) -> bool:
        going = super()._on_step()
        if not self._has_rollouts:
            self._pass()
        elif self.module.guard.cuts_rollout:
            raise Interrupted
        return going

    def _pass(self) -> None:
        """Ends one iteration and begins the next, or ends training when that was asked for."""
        self.end_iteration()
        guard = self.module.guard
        if guard.requested:
            raise Interrupted
        # Only SB3's own base class says what has to be copied; others are stopped at a boundary, however far it is.
        if isinstance(self.algorithm, BaseAlgorithm):
            self.module.take_snapshot(self)
        self._begun = time.monotonic()
        guard.running = True


def train(trainer: RLTrainer, module: RLModule, saver: CheckpointSaver, checkpoint: Path | None = None) -> Boundaries:
    """Trains an algorithm through its own `learn()`, to the end of the budget or until a stop is asked for.

    Args:
        trainer: Holds the budget, the callbacks and the loggers.
        module: The module around the algorithm.
        saver: Takes the checkpoints on the way.
        checkpoint: The one to go on from.

    Returns:
        The training, at its last boundary.

    Raises:
        ConfigError: The checkpoint does not fit.
        NonFiniteError: Training has diverged.
    """
    algorithm = module.algorithm
    _tell_what_is_idle(trainer, algorithm)
    done = 0
    if checkpoint is not None:
        restore_algorithm(checkpoint, algorithm)
        done = algorithm.num_timesteps
    boundaries = Boundaries(trainer.sb3_callbacks(), module, saver, checkpoint)
    algorithm.logger.output_formats.append(LightningWriter(trainer))
    for bar in trainer.bars:
        bar.open(done, trainer.max_env_steps)
    try:
        algorithm.learn(
            trainer.max_env_steps - done,
            callback=boundaries,
            reset_num_timesteps=checkpoint is None,
            **_options(trainer, algorithm),
        )
        boundaries.end_iteration()
    except Interrupted:
        boundaries.stop()
    finally:
        module.guard.running = False
        for bar in trainer.bars:
            bar.close()
        for target in trainer.loggers:
            target.finalize("success")
    return boundaries


def _options(trainer: RLTrainer, algorithm: BaseAlgorithm) -> dict[str, Any]:
    """The arguments of `learn()` that are only given when they differ from its defaults, or are not everyone's."""
    options: dict[str, Any] = {} if trainer.log_interval == -1 else {"log_interval": trainer.log_interval}
    if learn_takes(type(algorithm), "use_masking"):
        options["use_masking"] = trainer.use_masking
    if learn_takes(type(algorithm), "async_eval"):
        options["async_eval"] = candidate_workers(algorithm)
    return options


def _tell_what_is_idle(trainer: RLTrainer, algorithm: BaseAlgorithm) -> None:
    """Says which of the things asked for need a loop that Lightning drives."""
    callbacks: list[pl.Callback] = [callback for callback in trainer.callbacks if _is_users(callback)]  # type: ignore[attr-defined]
    idle = [type(callback).__name__ for callback in callbacks]
    asked = {
        "--fast": trainer.fast,
        "--precision": trainer.train_precision != "32-true",
        "--profiler": not isinstance(trainer.profiler, PassThroughProfiler),  # type: ignore[attr-defined]
    }
    idle += [flag for flag, is_asked in asked.items() if is_asked]
    if idle:
        logger.warning(
            "%s trains through its own learn(), where these do nothing: %s", type(algorithm).__name__, ", ".join(idle)
        )


def _is_users(callback: pl.Callback) -> bool:
    return not type(callback).__module__.startswith("lit_sb3_ray.")
