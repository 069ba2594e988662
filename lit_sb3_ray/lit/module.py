"""RLModule: an SB3 algorithm as a LightningModule, one `training_step` an iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import pytorch_lightning as pl
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from lit_sb3_ray.lit.speed import check_finite
from lit_sb3_ray.lit.state import capture, restore
from lit_sb3_ray.lit.stop import SHORT, Interrupted, StopGuard

if TYPE_CHECKING:
    from lit_sb3_ray.lit.iteration import Session
    from lit_sb3_ray.lit.loggers import LightningWriter

EVALUATED = "eval/mean_reward"


class Ticks:
    """One tick an epoch, and an epoch an iteration. No `DataLoader`: that draws from torch's generator at every start."""

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
        """Runs one iteration of the algorithm's own loop.

        Raises:
            NonFiniteError: A loss or a weight has become NaN or infinite.
        """
        session, guard = self._running_session(), self.guard
        if guard.requested:
            self.trainer.should_stop = True
            return
        self._take_snapshot()
        begun = time.monotonic()
        try:
            guard.running = True
            session.step()
            guard.running = False
        except Interrupted:
            guard.running = False
            session.stopped = True
        guard.seconds = time.monotonic() - begun
        if session.stopped and guard.cuts_iteration:
            assert guard.snapshot is not None
            restore(guard.snapshot, self.algorithm, session.callback)
            session.iteration = guard.snapshot.iteration
            session.stopped = False
        elif not session.stopped:
            check_finite(self.algorithm, session.iteration)
        self._publish()
        if session.done or guard.requested or self.num_timesteps >= self.until:
            self.trainer.should_stop = True

    def on_train_batch_end(self, outputs: Any, batch: int, batch_idx: int) -> None:
        """Tells Lightning's callbacks of an evaluation, as if Lightning had validated: EarlyStopping looks then."""
        if self.writer is not None and EVALUATED in self.writer.fresh:
            for callback in cast("Any", self.trainer).callbacks:
                callback.on_validation_end(self.trainer, self)
        if self.writer is not None:
            self.writer.fresh.clear()

    def log(self, name: str, value: Any, *, logger: bool | None = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs a metric; Lightning's loggers get it at the env step instead of Lightning's own batch count.

        Args:
            name: The metric's name.
            value: Its value.
            logger: False to keep it from the loggers.
            **kwargs: As Lightning's.
        """
        if logger is not False:
            for target in self.trainer.loggers:
                target.log_metrics({name: float(value)}, step=self.num_timesteps)
        super().log(name, value, logger=False, **kwargs)

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

    def _take_snapshot(self) -> None:
        session, guard = self._running_session(), self.guard
        long = guard.seconds > SHORT
        guard.snapshot = capture(self.algorithm, session.callback, session.iteration, self.extra()) if long else None

    def _publish(self) -> None:
        if self.writer is not None:
            for name, value in self.writer.fresh.items():
                super().log(name, value, logger=False, on_step=True, on_epoch=False)
