"""RLTrainer: Lightning's Trainer with env steps as its only clock."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit import iteration
from lit_sb3_ray.lit.beginning import begin
from lit_sb3_ray.lit.datamodule import RLEnvDataModule
from lit_sb3_ray.lit.module import RLModule
from lit_sb3_ray.lit.progress import ProgressStep, StepsProgressBar, shows_bar, without_bars
from lit_sb3_ray.lit.quiet import quieter
from lit_sb3_ray.lit.settings import DEFAULTS, check_settings, own_environment
from lit_sb3_ray.lit.slices import SliceEnd
from lit_sb3_ray.lit.speed import faster
from lit_sb3_ray.lit.stages import PlayingTrainer

logger = logging.getLogger(__name__)


class RLTrainer(PlayingTrainer):
    """Trains SB3 algorithms under Lightning: its loggers, callbacks and profilers, SB3's learning.

    `fit` gives the same weights, bit for bit, as the algorithm's own `learn()` for the same seed, whole or in slices.
    """

    def __init__(
        self,
        *,
        max_steps: int,
        run_name: str = "run",
        rl_callback: BaseCallback | list[BaseCallback] | None = None,
        log_interval: int | None = -1,
        reset_num_timesteps: bool = True,
        use_masking: bool = True,
        async_eval: Any = None,
        fast: bool = False,
        precision: str = "32-true",
        callbacks: pl.Callback | list[pl.Callback] | None = None,
        logger: Any = False,
        plugins: Any = None,
        enable_progress_bar: bool = False,
        **kwargs: Any,
    ) -> None:
        """Prepares a trainer.

        Args:
            max_steps: Env steps to train for; the schedules' horizon.
            run_name: Name of the algorithm's own TensorBoard run.
            rl_callback: SB3 callbacks.
            log_interval: Iterations (on-policy, ARS) or episodes (off-policy) between two dumps of SB3's logger; -1 for the
                algorithm's default, None for never.
            reset_num_timesteps: False to go on from `algorithm.num_timesteps`.
            use_masking: Whether MaskablePPO asks the envs for action masks.
            async_eval: What plays ARS's candidates, as its `learn()` takes it; None for the envs themselves where they can
                (`CandidateEnv`), and else for ARS, one candidate after another.
            fast: Use what is faster but changes the last bits (fused optimizers).
            precision: `32-true`, or `bf16-mixed` for `train()` alone.
            callbacks: Lightning callbacks. One with a `monitor` (EarlyStopping, ModelCheckpoint) looks whenever that metric
                has been logged anew: `eval/mean_reward` after an evaluation, `rollout/ep_rew_mean` after a dump of the logger.
            logger: Lightning loggers; none by default.
            plugins: Lightning plugins.
            enable_progress_bar: Show one bar, in env steps. SB3's `ProgressBarCallback` asks for the same bar; beside a bar of
                Lightning's, or of a class of your own, none is shown.
            **kwargs: Everything else that `pl.Trainer` takes, epochs excepted.

        Raises:
            ConfigError: A budget below one step, another clock than env steps, or an unsupported precision.
        """
        own = [callbacks] if isinstance(callbacks, pl.Callback) else list(callbacks or [])
        check_settings(max_steps, precision, own, kwargs)
        self.max_env_steps = max_steps
        self.run_name = run_name
        self.rl_callback = rl_callback
        self.log_interval = log_interval
        self.reset_num_timesteps = reset_num_timesteps
        self.use_masking = use_masking
        self.async_eval = async_eval
        self.fast = fast
        self.train_precision = precision
        bars = any(isinstance(callback, pl.callbacks.ProgressBar) for callback in own)
        given = self._given_callbacks()
        if (enable_progress_bar or shows_bar(given)) and not bars and not shows_bar(without_bars(given)):
            own.append(StepsProgressBar())
            bars = True
        if kwargs.pop("enable_checkpointing", False) and not any(isinstance(item, pl.callbacks.Checkpoint) for item in own):
            own.append(pl.callbacks.ModelCheckpoint())
        # Lightning would tell about GPUs and products while a trainer is made.
        with quieter("pytorch_lightning.utilities.rank_zero", logging.WARNING):
            super().__init__(
                max_epochs=-1,
                callbacks=[*own, SliceEnd()],
                enable_checkpointing=True,
                logger=logger,
                plugins=own_environment(plugins),
                enable_progress_bar=bars,
                **(DEFAULTS | kwargs),
            )

    @property
    def global_step(self) -> int:
        """Env steps done."""
        return 0 if self.module is None else self.module.num_timesteps

    @property
    def rl_num_timesteps(self) -> int:
        """Env steps done."""
        return self.global_step

    @property
    def rl_total_timesteps(self) -> int:
        """The budget in env steps."""
        return self.max_env_steps

    @property
    def rl_budget_reached(self) -> bool:
        """Whether the budget is used up."""
        return self.global_step >= self.max_env_steps

    @property
    def rl_progress(self) -> float:
        """Share of the budget used, 0 to 1."""
        return min(1.0, self.global_step / self.max_env_steps)

    @property
    def bars(self) -> list[StepsProgressBar]:
        """The progress bars that count env steps: one or none."""
        return [callback for callback in cast("Any", self).callbacks if isinstance(callback, StepsProgressBar)]

    def sb3_callbacks(self) -> list[BaseCallback]:
        """The SB3 callbacks that were given, and those that move the progress bar, which stands for SB3's own."""
        return [*without_bars(self._given_callbacks()), *(ProgressStep(bar) for bar in self.bars)]

    def _given_callbacks(self) -> list[BaseCallback]:
        given = self.rl_callback
        return list(given) if isinstance(given, list) else [] if given is None else [given]

    def fit(  # type: ignore[override]
        self,
        model: BaseAlgorithm | RLModule,
        datamodule: RLEnvDataModule | None = None,
        *,
        until: int | None = None,
        ckpt_path: str | Path | None = None,
    ) -> BaseAlgorithm:
        """Trains to the end of the budget, or until an env step, from where a second call goes on.

        Args:
            model: The algorithm, or a module around it.
            datamodule: Brings the training env; without it the algorithm's own is used.
            until: Env steps to stop at, at the first iteration boundary from there on.
            ckpt_path: A checkpoint folder to go on from.

        Returns:
            The algorithm.

        Raises:
            ConfigError: No env, an algorithm that cannot be driven, or a checkpoint that does not fit.
            NonFiniteError: Training has diverged.
        """
        module = self._take(model, datamodule)
        if module.session is None:
            begin(self, module, ckpt_path)
        session = module.session
        if session is None:
            return module.algorithm
        module.until = self.max_env_steps if until is None else min(until, self.max_env_steps)
        if session.done or module.num_timesteps >= module.until:
            return module.algorithm
        loggers = self.loggers
        with faster(module.algorithm):
            try:
                super().fit(module, datamodule=datamodule)
            finally:
                self.loggers = loggers
        if module.num_timesteps < module.until and not module.guard.requested:
            session.stopped = True
        if session.done or module.guard.requested:
            iteration.finish(session)
            self._tell_unseen_monitors()
        return module.algorithm

    def _tell_unseen_monitors(self) -> None:
        """Warns of callbacks that monitor a metric which was never logged, a misspelt one for instance."""
        trainer = cast("Any", self)
        for callback in trainer.callbacks:
            monitor = getattr(callback, "monitor", None)
            if monitor is not None and monitor not in trainer.callback_metrics:
                logged = ", ".join(sorted(trainer.callback_metrics)) or "none"
                logger.warning("%s never saw %r; logged were: %s", type(callback).__name__, monitor, logged)

    def _take(self, model: BaseAlgorithm | RLModule, datamodule: RLEnvDataModule | None) -> RLModule:
        """The module to train: the one of the last call if it is around the same algorithm."""
        if isinstance(model, RLModule):
            if model is not self.module:
                model.session = None
            module = model
        elif self.module is not None and self.module.algorithm is model:
            module = self.module
        else:
            module = RLModule(model)
        self.module = module
        if datamodule is not None and module.session is None:
            env = datamodule.get_env("fit")
            assert isinstance(env, VecEnv)
            module.algorithm.set_env(env)
        if module.algorithm.get_env() is None:
            raise ConfigError("the algorithm has no env: give it one, or pass a datamodule with a train_env")
        return module
