"""One iteration of an algorithm's own loop.

Stable-Baselines3 keeps its training loop inside `learn()`. Cut into iterations, the same calls in the same order give
the same weights, bit for bit, and whoever drives them can look in between: evaluate, save, stop, report to a scheduler.
No algorithm is written again here; everything that learns is the algorithm's own `collect_rollouts` and `train`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from lit_sb3_ray.errors import ConfigError

Profile = Callable[[str], AbstractContextManager[Any]]

LIBRARIES = ("stable_baselines3", "sb3_contrib")
"""The packages whose `learn()` is known to do what the iterations here do."""


@contextmanager
def no_profile(action: str) -> Iterator[None]:
    """Profiles nothing; stands in where no profiler was asked for."""
    yield


class StopMemory(CallbackList):
    """Callbacks whose wish to stop is remembered: ARS drops their answer, so it is heeded after the update."""

    stopped = False

    def on_step(self) -> bool:
        """Calls the callbacks; notes when one of them answers False."""
        going = super().on_step()
        self.stopped = self.stopped or not going
        return going


@dataclass
class Session:
    """What `learn()` keeps in its local variables, kept between iterations.

    Attributes:
        algorithm: The algorithm being trained.
        total_timesteps: Env steps at which training ends; schedules count towards it.
        callback: The algorithm's callbacks, as one.
        log_interval: Iterations (on-policy, ARS) or episodes (off-policy) between two dumps of the logger; None for never.
        use_masking: Whether MaskablePPO asks the envs for action masks.
        autocast: Makes the context that `train()` runs under, for mixed precision.
        profile: Makes a context that times the named action.
        async_eval: What plays ARS's candidates in its place, as its `learn()` takes it; None for ARS itself.
        agree: Told after a rollout whether this learner goes on; answers whether all learners of the run do.
        learners: How many learners the run has.
        iteration: Iterations done.
        stopped: Whether a callback has ended training.
    """

    algorithm: BaseAlgorithm
    total_timesteps: int
    callback: BaseCallback
    log_interval: int | None
    use_masking: bool = True
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext
    profile: Profile = no_profile
    async_eval: Any = None
    agree: Callable[[bool], bool] = bool
    learners: int = 1
    iteration: int = 0
    stopped: bool = False
    advance: Callable[[Session], bool] = field(init=False)
    collect_options: dict[str, bool] = field(init=False)

    def __post_init__(self) -> None:
        self.advance = iteration_of(self.algorithm)
        self.collect_options = {"use_masking": self.use_masking} if takes_masks(self.algorithm) else {}

    @property
    def done(self) -> bool:
        """Whether the budget is used up or a callback has ended training."""
        return self.stopped or self.algorithm.num_timesteps >= self.total_timesteps

    def step(self) -> None:
        """Runs one iteration; sets `stopped` when a callback ends training in it."""
        self.stopped = not self.advance(self)


def is_driven(algorithm: BaseAlgorithm) -> bool:
    """Whether an algorithm's loop can be cut into iterations here.

    False for algorithms with a `learn()` of their own, which may do anything (SBX's, written in JAX, have one), and for those
    whose policy is no torch module: they train through that `learn()`.
    """
    home = type(algorithm).learn.__module__.partition(".")[0]
    return (
        home in LIBRARIES
        and isinstance(algorithm.policy, torch.nn.Module)
        and (isinstance(algorithm, OnPolicyAlgorithm | OffPolicyAlgorithm) or hasattr(algorithm, "_do_one_update"))
    )


def iteration_of(algorithm: BaseAlgorithm) -> Callable[[Session], bool]:
    """Picks the function that runs one iteration of an algorithm.

    Raises:
        ConfigError: The algorithm's loop is of no known kind.
    """
    if isinstance(algorithm, OnPolicyAlgorithm):
        return _on_policy_iteration
    if isinstance(algorithm, OffPolicyAlgorithm):
        return _off_policy_iteration
    if hasattr(algorithm, "_do_one_update"):
        return _random_search_iteration
    raise ConfigError(
        f"{type(algorithm).__name__} is neither on-policy, off-policy nor ARS: its loop cannot be driven in iterations"
    )


def default_log_interval(algorithm: BaseAlgorithm) -> int:
    """The `log_interval` that the algorithm's own `learn()` takes when none is given."""
    return int(inspect.signature(type(algorithm).learn).parameters["log_interval"].default)


def start(
    algorithm: BaseAlgorithm,
    total_timesteps: int,
    callback: list[BaseCallback],
    *,
    log_interval: int | None,
    run_name: str = "run",
    reset_num_timesteps: bool = True,
    use_masking: bool = True,
) -> Session:
    """Does what `learn()` does before its loop.

    Args:
        algorithm: The algorithm to train; its env must be set.
        total_timesteps: Env steps at which training ends, counted from the run's beginning.
        callback: SB3 callbacks.
        log_interval: See `Session`.
        run_name: Name of the algorithm's own TensorBoard run, if it has one.
        reset_num_timesteps: False to go on counting from `algorithm.num_timesteps`.
        use_masking: See `Session`.

    Returns:
        The session, ready for its first `step()`.
    """
    wrapped = StopMemory(callback) if hasattr(algorithm, "_do_one_update") else CallbackList(callback)
    remaining = total_timesteps if reset_num_timesteps else total_timesteps - algorithm.num_timesteps
    _, callbacks = algorithm._setup_learn(remaining, wrapped, reset_num_timesteps, run_name, False)
    session = Session(algorithm, total_timesteps, callbacks, log_interval, use_masking)
    local_variables = {
        "self": algorithm,
        "total_timesteps": total_timesteps,
        "callback": callbacks,
        "log_interval": log_interval,
        "tb_log_name": run_name,
        "reset_num_timesteps": reset_num_timesteps,
        "progress_bar": False,
    }
    callbacks.on_training_start(local_variables, {})
    return session


def finish(session: Session) -> None:
    """Does what `learn()` does after its loop."""
    if session.async_eval is not None:
        session.async_eval.close()
    session.callback.on_training_end()


def _on_policy_iteration(session: Session) -> bool:
    algorithm: Any = session.algorithm
    with session.profile("collect_rollouts"):
        going = algorithm.collect_rollouts(
            algorithm.env,
            session.callback,
            algorithm.rollout_buffer,
            n_rollout_steps=algorithm.n_steps,
            **session.collect_options,
        )
    if not session.agree(going):
        return False
    session.iteration += 1
    algorithm._update_current_progress_remaining(algorithm.num_timesteps, session.total_timesteps)
    if session.log_interval is not None and session.iteration % session.log_interval == 0:
        algorithm.dump_logs(session.iteration)
    with session.profile("train"), session.autocast():
        algorithm.train()
    return True


def _off_policy_iteration(session: Session) -> bool:
    algorithm: Any = session.algorithm
    with session.profile("collect_rollouts"):
        rollout = algorithm.collect_rollouts(
            algorithm.env,
            train_freq=algorithm.train_freq,
            action_noise=algorithm.action_noise,
            callback=session.callback,
            learning_starts=algorithm.learning_starts,
            replay_buffer=algorithm.replay_buffer,
            log_interval=session.log_interval,
        )
    if not session.agree(rollout.continue_training):
        return False
    session.iteration += 1
    if algorithm.num_timesteps > algorithm.learning_starts:
        collected = rollout.episode_timesteps * session.learners
        gradient_steps = algorithm.gradient_steps if algorithm.gradient_steps >= 0 else collected
        if gradient_steps > 0:
            with session.profile("train"), session.autocast():
                algorithm.train(batch_size=algorithm.batch_size, gradient_steps=gradient_steps)
    return True


def _random_search_iteration(session: Session) -> bool:
    """One update of ARS, which has neither `collect_rollouts` nor `train`."""
    algorithm: Any = session.algorithm
    algorithm._update_current_progress_remaining(algorithm.num_timesteps, session.total_timesteps)
    with session.profile("update"):
        algorithm._do_one_update(session.callback, session.async_eval)
    session.iteration += 1
    if session.log_interval is not None and algorithm._n_updates % session.log_interval == 0:
        algorithm.dump_logs()
    return not (isinstance(session.callback, StopMemory) and session.callback.stopped)


def takes_masks(algorithm: BaseAlgorithm) -> bool:
    """Whether an algorithm asks the envs for action masks while it collects, as MaskablePPO does."""
    collect = getattr(algorithm, "collect_rollouts", None)
    return collect is not None and "use_masking" in inspect.signature(collect).parameters
