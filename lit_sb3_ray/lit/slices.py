"""The end of a slice: where `fit` returns, because the training is over or because it is to be called again."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl


class SliceEnd(pl.callbacks.Checkpoint):
    """Ends a call of `fit` after the iteration that reaches its last env step.

    Lightning has one flag, `should_stop`, for its own callbacks and for this. It is set here after all others had their
    say, so that a stop they ask for ends the training for good, and a later `fit` does not go on. It saves nothing; it is a
    `Checkpoint` because Lightning calls those last.
    """

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Notes whether a callback has ended the training, and stops if the slice is over."""
        session, guard = pl_module.session, pl_module.guard
        if trainer.should_stop and not guard.requested:
            session.stopped = True
        if session.done or guard.requested or pl_module.num_timesteps >= pl_module.until:
            trainer.should_stop = True
