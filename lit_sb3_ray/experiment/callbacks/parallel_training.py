"""Gradient steps in a thread of their own, while the main thread collects."""

from __future__ import annotations

import copy
import logging
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr
from torch import nn

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.finite import check_finite
from lit_sb3_ray.lit.refusals import reason
from lit_sb3_ray.lit.speed import grouped_updates

logger = logging.getLogger(__name__)

# What stands in the algorithm's own attributes while its `train` is held.
_HELD = ("train", "_excluded_save_params")


class GivenUpError(Exception):
    """Raised in the thread when nobody waits for what it computes any more."""


class DrawnBatches:
    """Batches drawn beforehand, in the place of a learner's replay buffer.

    The buffer itself belongs to the main thread, which goes on filling it, and so do the envs that hindsight rewards and
    normalisation are asked for.

    Attributes:
        given_up: Set to end the training at its next gradient step.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        """Takes the batches.

        Args:
            batches: What a replay buffer's `sample` returns, one a gradient step.
        """
        self._batches = deque(batches)
        self.given_up = False

    def __len__(self) -> int:
        """How many are left."""
        return len(self._batches)

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """Gives the next batch, as a replay buffer does.

        Raises:
            GivenUpError: Training is to end.
        """
        if self.given_up:
            raise GivenUpError
        return self._batches.popleft()


class ParallelTrainCallback(BaseCallback):
    """Trains a copy of the model in a thread while the main thread collects with the model itself.

    At the end of each rollout (meant for `train_freq: [1, episode]`), if the thread is done, the model takes the copy's
    weights, optimizers and metrics, and the thread starts upon the next gradient steps, with batches drawn there and then.
    Otherwise the model goes on collecting with the weights it has. So the model, and whatever is saved of it, is always in
    the state of a whole number of such exchanges.

    How often the two meet depends on the machine, so that a seed does not give the same weights again. The updates are made in
    full precision.
    """

    only_for_one_learner = "learners exchange gradients as they train, and this trains beside that"

    def __init__(self, gradient_steps: int = 100, verbose: int = 0, sleep_time: float = 0.0) -> None:
        """Prepares training.

        Args:
            gradient_steps: Gradient steps between two exchanges; the algorithm's own `gradient_steps` is not used.
            verbose: 1 tells when the last gradient steps are waited for.
            sleep_time: Seconds to rest after each env step, which leaves more of the processor to the thread.

        Raises:
            ConfigError: A number is out of range.
        """
        super().__init__(verbose)
        if gradient_steps < 1:
            raise ConfigError(f"gradient_steps of ParallelTrainCallback must be at least 1, got {gradient_steps}")
        if not 0 <= sleep_time < float("inf"):
            raise ConfigError(f"sleep_time of ParallelTrainCallback must be a number of seconds from 0 on, got {sleep_time}")
        self.gradient_steps = gradient_steps
        self.sleep_time = sleep_time
        self._learner: Any = None
        self._batches = DrawnBatches(())
        self._training: Future[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    @classmethod
    def check_algorithm(cls, algorithm: type[Any]) -> None:
        """Checks that an algorithm's collecting and training can go on side by side.

        Args:
            algorithm: Its class.

        Raises:
            ConfigError: They cannot.
        """
        if not issubclass(algorithm, OffPolicyAlgorithm):
            raise ConfigError(
                f"ParallelTrainCallback suits off-policy algorithms such as SAC and TQC; {algorithm.__name__} learns from "
                "what it has just collected, and cannot collect meanwhile"
            )
        if algorithm._on_step is not OffPolicyAlgorithm._on_step:
            raise ConfigError(
                f"ParallelTrainCallback suits algorithms such as SAC, TQC and TD3; {algorithm.__name__} changes its networks "
                "while it collects"
            )

    def state_dict(self) -> dict[str, object]:
        """Nothing: the model's state is all there is to go on with."""
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Takes nothing."""

    def _init_callback(self) -> None:
        self.check_algorithm(type(self.model))
        if not isinstance(self.model.policy, nn.Module):
            raise ConfigError(f"ParallelTrainCallback suits torch's networks only, which {type(self.model).__name__} has not")
        self._close()
        self._learner = None

    def _on_rollout_start(self) -> None:
        self._release()

    def _on_step(self) -> bool:
        if self.sleep_time > 0:
            time.sleep(self.sleep_time)
        return True

    def _on_rollout_end(self) -> None:
        self._hold()
        if self._training is not None and not self._training.done():
            return
        self._exchange()
        if self.num_timesteps >= self._model.learning_starts:
            self._train()

    def _on_training_end(self) -> None:
        self._release()
        if self.num_timesteps < self.locals["total_timesteps"]:
            # A signal or a callback has ended it, and may have put back an earlier state.
            self._close()
            return
        if self._training is not None and self.verbose > 0:
            logger.info("Waiting for the last gradient steps")
        self._exchange()
        self._close()
        check_finite(self.model, 0)

    @property
    def _model(self) -> Any:
        return self.model

    def _hold(self) -> None:
        """Lets the algorithm's loop train nothing; what does that is no part of what is saved."""
        self._release()
        excluded = [*self._model._excluded_save_params(), *_HELD]
        self._model.train = _train_nothing
        self._model._excluded_save_params = lambda: excluded

    def _release(self) -> None:
        for name in _HELD:
            vars(self._model).pop(name, None)

    def _train(self) -> None:
        """Starts upon the next gradient steps."""
        model = self._model
        if self._learner is None:
            self._learner = _copy_of(model)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="parallel-training")
        learner, normalize = self._learner, model.get_vec_normalize_env()
        learner._update_current_progress_remaining(self.num_timesteps, self.locals["total_timesteps"])
        batches = (model.replay_buffer.sample(model.batch_size, env=normalize) for _ in range(self.gradient_steps))
        learner.replay_buffer = self._batches = DrawnBatches(batches)
        self._training = self._thread.submit(_gradient_steps, learner, self.gradient_steps, model.batch_size)

    def _exchange(self) -> None:
        """Waits for the thread, and takes over what it has come to; raises what it has raised."""
        if self._training is None:
            return
        training, self._training = self._training, None
        if training.exception() is not None:
            self._close()
        training.result()
        model, learner = self._model, self._learner
        # Copies: the thread goes on in the very tensors that an optimizer's state consists of.
        model.set_parameters(copy.deepcopy(learner.get_parameters()), exact_match=True, device=model.device)
        for name in learner._get_torch_save_params()[1]:
            recursive_setattr(model, f"{name}.data", recursive_getattr(learner, name).detach().clone())
        model._n_updates = learner._n_updates
        for name, value in learner.logger.name_to_value.items():
            model.logger.record(name, value, exclude=learner.logger.name_to_excluded[name])
        learner.logger.dump()

    def _close(self) -> None:
        """Ends the thread at its next gradient step; what it has come to is lost."""
        self._batches.given_up = True
        if self._training is not None:
            wait([self._training])
            error = self._training.exception()
            if error is not None and not isinstance(error, GivenUpError):
                logger.warning("The last gradient steps have failed: %s", reason(error))
            self._training = None
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


def _train_nothing(*args: Any, **kwargs: Any) -> None:
    """Stands in for an algorithm's `train`."""


def _gradient_steps(learner: Any, gradient_steps: int, batch_size: int) -> None:
    with grouped_updates(learner):
        learner.train(gradient_steps=gradient_steps, batch_size=batch_size)


def _copy_of(model: Any) -> Any:
    """Copies an algorithm with networks and optimizers; envs and buffer stay the model's, and the logger is one of its own."""
    own = {name: value for name, value in vars(model).items() if name not in _HELD}
    shared = (model.env, model.get_vec_normalize_env(), model.replay_buffer, model.logger)
    learner = copy.copy(model)
    vars(learner).clear()
    vars(learner).update(copy.deepcopy(own, {id(item): item for item in shared}))
    learner.set_logger(Logger(None, []))
    return learner
