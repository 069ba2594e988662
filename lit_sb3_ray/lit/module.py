"""RLModule: an SB3 algorithm as a LightningModule, a `training_step` of one iteration or of several short ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import pytorch_lightning as pl
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from lit_sb3_ray.lit.finite import check_finite, explaining
from lit_sb3_ray.lit.state import capture, restore
from lit_sb3_ray.lit.stop import Interrupted, StopGuard

if TYPE_CHECKING:
    from lit_sb3_ray.lit.checkpoint import Training
    from lit_sb3_ray.lit.data_parallel import DataParallel
    from lit_sb3_ray.lit.iteration import Session
    from lit_sb3_ray.lit.loggers import LightningWriter
    from lit_sb3_ray.lit.state import Snapshot

EVALUATED = "eval/mean_reward"
# Env steps of a `training_step` at least. Lightning takes a fraction of a millisecond for each, which is more than a tenth
# of what an iteration of one env step takes.
STRIDE = 128


def _saves_nothing(session: Session) -> bool:
    return False


class Ticks:
    """One tick an epoch, and a `training_step` a tick. No `DataLoader`: that draws from torch's generator at every start."""

    def __iter__(self) -> Iterator[int]:
        return iter((0,))

    def __len__(self) -> int:
        return 1


class RLModule(pl.LightningModule):
    """A Stable-Baselines3 or sb3-contrib algorithm under Lightning's loop.

    Optimisation is manual and the algorithm's own; the policy is not a registered submodule, since SB3 places it.

    Attributes:
        algorithm: The algorithm, untouched.
        session: Its training in progress; None before the first `fit`.
        guard: Through which a stop is asked for.
        extra: Called at a boundary for further entries of the snapshot; see `Snapshot.extra`.
        at_boundary: Called after every iteration; says whether it has saved the state.
        parallel: This learner's part in a run of several; None for a run of one.
    """

    def __init__(self, algorithm: BaseAlgorithm) -> None:
        """Wraps an algorithm.

        Args:
            algorithm: Any algorithm with `collect_rollouts` and `train`, or ARS.
        """
        super().__init__()
        self.automatic_optimization = False
        self.algorithm = algorithm
        self.session: Session | None = None
        self.writer: LightningWriter | None = None
        self.guard = StopGuard()
        self.extra: Callable[[], dict[str, Any]] = dict
        self.at_boundary: Callable[[Session], bool] = _saves_nothing
        self.parallel: DataParallel | None = None
        self.until = 0

    @property
    def num_timesteps(self) -> int:
        """Env steps done."""
        return int(self.algorithm.num_timesteps)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """None for Lightning: the algorithm steps its own."""
        return []

    def train_dataloader(self) -> Ticks:
        """Ticks, one an epoch."""
        return Ticks()

    def training_step(self, batch: int, batch_idx: int) -> None:
        """Runs one iteration of the algorithm's own loop, or as many as make up `STRIDE` env steps.

        It ends early where a metric has been logged, so that callbacks which monitor one see every value.

        Raises:
            NonFiniteError: A loss or a weight has become NaN or infinite.
        """
        session = self._running_session()
        end = min(self.num_timesteps + STRIDE, self.until)
        while not (session.done or self.guard.requested):
            self._iterate(session)
            if self.num_timesteps >= end or (self.writer is not None and self.writer.fresh):
                break
        self._publish()

    def _iterate(self, session: Session) -> None:
        guard = self.guard
        if not self._begin_iteration(session):
            session.stopped = True
            return
        begun = time.monotonic()
        try:
            guard.running = True
            with explaining(self.algorithm):
                session.step()
        except Interrupted:
            guard.cut = True
        finally:
            guard.running = False
        guard.seconds = time.monotonic() - begun
        if guard.cut:
            if self.parallel is not None:
                self.parallel.give_up()
            self.go_back(session)
            session.stopped = False
        elif not session.stopped:
            check_finite(self.algorithm, session.iteration)
        if not guard.requested and self.at_boundary(session):
            guard.stale = True

    def _begin_iteration(self, session: Session) -> bool:
        """Copies the state if need be, and waits for the other learners; False when they go no further."""
        parallel = self.parallel
        if parallel is None:
            self.take_snapshot(session)
            return True
        due = self.guard.wants_snapshot(time.monotonic())
        if not parallel.next_iteration(session, due):
            return False
        if due:
            self._copy_state(session)
            parallel.mark(session)
        return True

    def on_train_batch_end(self, outputs: Any, batch: int, batch_idx: int) -> None:
        """Calls the callbacks' `on_validation_end` after an evaluation, as if Lightning had validated.

        A callback with a `monitor` (EarlyStopping, ModelCheckpoint) is called when that metric has been logged anew.
        """
        self._tell_monitors()

    def publish(self) -> None:
        """Hands on what was logged outside a `training_step`: to Lightning, and to the callbacks that monitor it."""
        self._publish()
        self._tell_monitors()

    def _tell_monitors(self) -> None:
        if self.writer is None or not self.writer.fresh:
            return
        fresh = set(self.writer.fresh)
        self.writer.fresh.clear()
        for callback in cast("Any", self.trainer).callbacks:
            # A bar of Lightning's would close the validation bar that it never opened.
            due = (getattr(callback, "monitor", None) or EVALUATED) in fresh
            if due and not isinstance(callback, pl.callbacks.ProgressBar):
                callback.on_validation_end(self.trainer, self)

    def log(self, name: str, value: Any, *, logger: bool | None = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs a metric; Lightning's loggers get it at the env step instead of Lightning's own batch count.

        Args:
            name: The metric's name.
            value: Its value.
            logger: False to keep it from the loggers.
            **kwargs: As Lightning's.
        """
        super().log(name, value, logger=False, **kwargs)
        if self.writer is not None:
            self.writer.fresh[name] = float(value)
        if logger is not False:
            for target in self.trainer.loggers:
                target.log_metrics({name: float(value)}, step=self.num_timesteps)

    def teardown(self, stage: str) -> None:
        """Keeps Lightning from finalising the loggers at the end of a slice; `RLTrainer` puts them back."""
        if self.session is not None and not self._is_last_slice():
            self.trainer.loggers = []

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds the algorithm's zip to a Lightning checkpoint; exact resume needs a checkpoint folder instead."""
        buffer = BytesIO()
        self.algorithm.save(buffer)
        checkpoint["algorithm"] = buffer.getvalue()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes networks and optimizers from a Lightning checkpoint."""
        with BytesIO(checkpoint["algorithm"]) as buffer:
            loaded = type(self.algorithm).load(buffer, device=self.algorithm.device)
        parameters: Any = loaded.get_parameters()
        self.algorithm.set_parameters(parameters, device=self.algorithm.device)

    @property
    def went_back_to(self) -> Snapshot | None:
        """The earlier state that a stop has put back, because the iteration under way would not have ended in time."""
        return self.guard.snapshot if self.guard.cut else None

    def take_snapshot(self, training: Training) -> None:
        """Copies the state of a training that stands at a boundary, if the copy there is will not do.

        Args:
            training: The training.
        """
        if self.guard.wants_snapshot(time.monotonic()):
            self._copy_state(training)

    def _copy_state(self, training: Training) -> None:
        guard, now = self.guard, time.monotonic()
        guard.snapshot = capture(self.algorithm, training.callback, training.iteration, self.extra())
        guard.stale, guard.taken, guard.cost = False, now, time.monotonic() - now

    def go_back(self, training: Training) -> None:
        """Puts the copied state back into a training whose iteration was cut.

        Args:
            training: The training.
        """
        snapshot = self.guard.snapshot
        assert snapshot is not None, "an iteration is cut only where there is a state to go back to"
        restore(snapshot, self.algorithm, training.callback)
        training.iteration = snapshot.iteration

    def autocast_training(self, precision: str) -> None:
        """Runs `train()`, and nothing else, in lower precision.

        Args:
            precision: `32-true` or `bf16-mixed`.
        """
        if precision == "bf16-mixed":
            device_type = torch.device(self.algorithm.device).type
            self._running_session().autocast = partial(torch.autocast, device_type=device_type, dtype=torch.bfloat16)

    def _running_session(self) -> Session:
        assert self.session is not None, "the module is trained through RLTrainer.fit"
        return self.session

    def _is_last_slice(self) -> bool:
        session = self._running_session()
        return session.done or self.guard.requested or self.num_timesteps < self.until

    def _publish(self) -> None:
        if self.writer is not None:
            # One `self.log` a metric would cost more than a DQN update.
            self.trainer.callback_metrics.update({name: torch.tensor(value) for name, value in self.writer.fresh.items()})
