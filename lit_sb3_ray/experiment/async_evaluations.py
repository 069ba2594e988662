"""Evaluations on the side: a copy of the model is evaluated in an actor while training goes on.

A copy is a model file with its statistics in the run folder, so that it becomes the best model by a rename, is part of every
checkpoint taken until its result is recorded, and can be evaluated again.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from lit_sb3_ray.experiment.evaluations import EvaluationCallback, EvaluationPlan, save_model
from lit_sb3_ray.experiment.run_folder import RunFolder, pending_files, pending_steps
from lit_sb3_ray.lit.module import RLModule
from lit_sb3_ray.lit.stop import StopGuard

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.evaluator import EvaluatorRecipe
    from lit_sb3_ray.experiment.remote_evaluator import RemoteEvaluator

logger = logging.getLogger(__name__)

# Copies that are not evaluated yet: one is played and one waits, so that the actor is never idle. A further one has to wait
# for the first, and training with it: none is left out, and an evaluation that takes longer than the training between two
# does not fill the disk.
MOST_UNDER_WAY = 2
# How often a wait looks whether a stop was asked for, in seconds.
_LOOK_S = 0.1


class AsyncEvaluationCallback(EvaluationCallback):
    """An `EvaluationCallback` that does not wait: results are recorded when they are there, at the env step of their copy.

    The values are those of the evaluation that would have been played at that step, the best model is the copy that was
    evaluated, and a callback that ends training does so when the result has arrived.

    Attributes:
        guard: Whoever asks for a stop does not wait for evaluations; they are left to the run that goes on.
    """

    def __init__(
        self,
        evaluator: RemoteEvaluator,
        plan: EvaluationPlan,
        run: RunFolder,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        verbose: int = 1,
    ) -> None:
        """Prepares evaluations.

        Args:
            evaluator: Plays them.
            plan: When and how.
            run: Where results, copies and the best model go.
            callback_on_new_best: Called at each new best.
            callback_after_eval: Called after each evaluation; False ends training.
            verbose: 1 tells of each evaluation.
        """
        super().__init__(None, plan, run, callback_on_new_best, callback_after_eval, verbose)
        self.evaluator = evaluator
        self.guard = StopGuard()
        self._left: deque[int] = deque()

    @classmethod
    def start(cls, recipe: EvaluatorRecipe, run: RunFolder, verbose: int = 1) -> AsyncEvaluationCallback:
        """Starts an evaluation actor, connecting to Ray if need be, and makes the callback; see `RemoteEvaluator` for errors.

        Args:
            recipe: What is built in the actor.
            run: Where results, copies and the best model go.
            verbose: 1 tells of each evaluation.
        """
        from lit_sb3_ray.experiment.remote_evaluator import RemoteEvaluator

        return cls(RemoteEvaluator(recipe), recipe.plan, run, verbose=verbose)

    def state_dict(self) -> dict[str, Any]:
        """Best and last mean return, and the env steps of the copies whose results are not recorded."""
        return {**super().state_dict(), "pending": [*self.evaluator.steps, *self._left]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts back what `state_dict` gave; copies are asked for again at the next env step."""
        self._load_best(state)
        self.evaluator.forget()
        self._left = deque(state.get("pending", ()))

    def finish(self) -> None:
        """Waits for all evaluations and records them, unless a stop is asked for."""
        if not self.guard.requested:
            self._ask_again()
        while self.evaluator.steps and not self.guard.requested:
            self.evaluator.wait(_LOOK_S)
            self._record_answers()

    def _on_training_end(self) -> None:
        self.finish()

    def _on_step(self) -> bool:
        self._ask_again()
        if not self._record_answers():
            return False
        if not self._is_due():
            return True
        while len(self.evaluator.steps) >= MOST_UNDER_WAY and not self.guard.requested:
            self.evaluator.wait(_LOOK_S)
            if not self._record_answers():
                return False
        step = self.num_timesteps
        save_model(self.model, self.run.pending_model(step), self.run.pending_statistics(step))
        self._ask(step)
        return True

    def _ask(self, step: int) -> None:
        statistics = self.run.pending_statistics(step)
        self.evaluator.ask(step, self.run.pending_model(step), statistics if statistics.exists() else None)

    def _ask_again(self) -> None:
        while self._left:
            self._ask(self._left.popleft())

    def _record_answers(self) -> bool:
        """Records the results that are there; False when one of them ends training."""
        going = True
        while (answer := self.evaluator.take()) is not None:
            step, result = answer
            going = self._conclude(step, result) and going
            self._drop(step)
        return going

    def _output(self) -> Logger:
        # What the training has recorded since belongs to a later step.
        return Logger(folder=None, output_formats=self.logger.output_formats)

    def _keep_best(self, step: int) -> None:
        statistics = self.run.pending_statistics(step)
        if statistics.exists():
            statistics.replace(self.run.best_statistics)
        self.run.pending_model(step).replace(self.run.best)

    def _drop(self, step: int) -> None:
        for file in (self.run.pending_model(step), self.run.pending_statistics(step)):
            file.unlink(missing_ok=True)


class LastEvaluations(pl.Callback):
    """Lets a training end only when the evaluations under way are recorded, while its loggers are still open."""

    def __init__(self, evaluations: AsyncEvaluationCallback) -> None:
        self.evaluations = evaluations

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Waits for them; callbacks that monitor a metric see them, too."""
        self.evaluations.finish()
        assert isinstance(pl_module, RLModule)
        pl_module.publish()


def discard_copies(run: RunFolder) -> None:
    """Removes the copies that are left in a run folder; the checkpoint, if there is one, has its own."""
    left = sorted(pending_steps(run.path))
    if left:
        logger.warning("Not evaluated yet: the model at %s env steps; a resumed run begins with that", left)
    for file in pending_files(run.path):
        file.unlink()


def find_async_evaluations(callbacks: list[BaseCallback]) -> AsyncEvaluationCallback | None:
    """Finds the callback among others; None where evaluations are waited for."""
    return next((callback for callback in callbacks if isinstance(callback, AsyncEvaluationCallback)), None)
