"""RLTrainer: Lightning's Trainer with env steps as its only clock."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytorch_lightning as pl
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit import checkpoint, iteration
from lit_sb3_ray.lit.candidates import candidate_workers
from lit_sb3_ray.lit.datamodule import RLEnvDataModule
from lit_sb3_ray.lit.evaluation import begin_anew, evaluate, normalized_alike
from lit_sb3_ray.lit.loggers import LightningWriter
from lit_sb3_ray.lit.module import RLModule
from lit_sb3_ray.lit.progress import ProgressStep, StepsProgressBar
from lit_sb3_ray.lit.quiet import quieter
from lit_sb3_ray.lit.settings import DEFAULTS, check_settings, own_environment
from lit_sb3_ray.lit.slices import SliceEnd
from lit_sb3_ray.lit.speed import faster, use_fused_optimizers
from lit_sb3_ray.lit.stop import StopStep
from lit_sb3_ray.scale.telemetry import observed

logger = logging.getLogger(__name__)


class RLTrainer(pl.Trainer):
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
            enable_progress_bar: Show one bar, in env steps.
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
        self.module: RLModule | None = None
        bars = any(isinstance(callback, pl.callbacks.ProgressBar) for callback in own)
        if enable_progress_bar and not bars:
            own.append(StepsProgressBar())
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
                enable_progress_bar=enable_progress_bar or bars,
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
        """The SB3 callbacks that were given, and those that move the progress bar."""
        given = self.rl_callback
        callbacks = list(given) if isinstance(given, list) else [] if given is None else [given]
        return [*callbacks, *(ProgressStep(bar) for bar in self.bars)]

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
            self._begin(module, ckpt_path)
        session = module.session
        if session is None:
            return module.algorithm
        module.until = min(until or self.max_env_steps, self.max_env_steps)
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

    def validate(  # type: ignore[override]
        self, model: BaseAlgorithm | RLModule | None = None, datamodule: RLEnvDataModule | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Evaluates on the validation env; see `test` for the options."""
        return self._evaluate("validate", model, datamodule, **options)

    def test(  # type: ignore[override]
        self, model: BaseAlgorithm | RLModule | None = None, datamodule: RLEnvDataModule | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Evaluates on the test env.

        Args:
            model: The algorithm; the one last trained when None.
            datamodule: Brings the env; or give `env`.
            **options: `env`, `n_eval_episodes` (10), `deterministic` (True), `render` (False), `reward_threshold` (None),
                `return_episode_rewards` (False), `use_masking` (True), `seed` (None).

        Returns:
            One dict: `<stage>/mean_reward`, `std_reward`, `mean_episode_length`, `std_episode_length`, `n_eval_episodes`,
            `success_rate` if the env tells successes, and per-episode lists when asked for.

        Raises:
            ConfigError: No env, or one that does not normalise what the policy was trained on normalised.
            AssertionError: The mean return is below `reward_threshold`.
        """
        return self._evaluate("test", model, datamodule, **options)

    def predict(  # type: ignore[override]
        self,
        model: BaseAlgorithm | RLModule | None = None,
        observation: Any = None,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = True,
        env: VecEnv | None = None,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """One call of the policy.

        Args:
            model: The algorithm; the one last trained when None.
            observation: Shape `(*obs)` or `(n_envs, *obs)`; a fresh reset of `env` when None.
            state: Hidden states of a recurrent policy.
            episode_start: Shape `(n_envs,)`, for a recurrent policy.
            deterministic: Take the mode instead of sampling.
            env: Gives the observation when there is none.
            action_masks: Valid actions, for MaskablePPO.

        Returns:
            Actions, and the next hidden states if any.

        Raises:
            ConfigError: Neither an observation nor an env.
        """
        algorithm = self._algorithm(model)
        if observation is None:
            if env is None:
                raise ConfigError("predict needs an observation, or an env to take one from")
            observation = env.reset()
        masks = {} if action_masks is None else {"action_masks": action_masks}
        return algorithm.predict(observation, state, episode_start, deterministic, **masks)

    def _evaluate(
        self,
        stage: str,
        model: BaseAlgorithm | RLModule | None,
        datamodule: RLEnvDataModule | None,
        *,
        env: VecEnv | None = None,
        n_eval_episodes: int = 10,
        deterministic: bool = True,
        render: bool = False,
        reward_threshold: float | None = None,
        return_episode_rewards: bool = False,
        use_masking: bool = True,
        seed: int | None = None,
    ) -> list[dict[str, Any]]:
        algorithm = self._algorithm(model)
        if env is None:
            source = datamodule or RLEnvDataModule(algorithm.get_env())
            found = source.get_env(stage)
            assert isinstance(found, VecEnv)
            env = found
        options: dict[str, Any] = {"deterministic": deterministic, "render": render, "use_masking": use_masking, "seed": seed}
        with normalized_alike(algorithm, env):
            result = evaluate(algorithm, env, n_eval_episodes, **options)
        if env is algorithm.get_env():
            begin_anew(algorithm)
        if reward_threshold is not None and result.mean_reward <= reward_threshold:
            raise AssertionError(f"mean return {result.mean_reward:.2f} is not above {reward_threshold:.2f}")
        row: dict[str, Any] = {
            f"{stage}/mean_reward": result.mean_reward,
            f"{stage}/std_reward": result.std_reward,
            f"{stage}/mean_episode_length": result.mean_ep_length,
            f"{stage}/std_episode_length": float(np.std(result.lengths)),
            f"{stage}/n_eval_episodes": len(result.returns),
        }
        if result.success_rate is not None:
            row[f"{stage}/success_rate"] = result.success_rate
        if return_episode_rewards:
            row |= {f"{stage}/episode_rewards": list(result.returns), f"{stage}/episode_lengths": list(result.lengths)}
        return [row]

    def _algorithm(self, model: BaseAlgorithm | RLModule | None) -> BaseAlgorithm:
        if model is None and self.module is not None:
            return self.module.algorithm
        if model is None:
            raise ConfigError("no model was given and none was trained")
        return model.algorithm if isinstance(model, RLModule) else model

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

    def _begin(self, module: RLModule, ckpt_path: str | Path | None) -> None:
        algorithm, trainer = module.algorithm, cast("Any", self)
        if not iteration.is_driven(algorithm):
            raise ConfigError(f"{type(algorithm).__name__} cannot be driven in iterations: it trains through its own learn()")
        if ckpt_path is not None:
            checkpoint.restore_algorithm(Path(ckpt_path), algorithm)
            if algorithm.num_timesteps >= self.max_env_steps:
                # Nothing is left to do, and a reset of the envs would already change running statistics.
                return
        default = iteration.default_log_interval(algorithm)
        # Before the envs are reset, which already changes running statistics.
        async_eval = self.async_eval or candidate_workers(algorithm)
        parallel = module.parallel
        if parallel is not None:
            parallel.begin(algorithm)
        module.session = iteration.start(
            algorithm,
            self.max_env_steps,
            [*([] if parallel is None else [parallel.tally]), *self.sb3_callbacks(), StopStep(module.guard)],
            log_interval=default if self.log_interval == -1 else self.log_interval,
            run_name=self.run_name,
            reset_num_timesteps=self.reset_num_timesteps and ckpt_path is None,
            use_masking=self.use_masking,
        )
        module.session.async_eval = async_eval
        module.session.profile = observed(trainer.profiler.profile, lambda: module.num_timesteps)
        module.autocast_training(self.train_precision)
        module.writer = LightningWriter(self)
        algorithm.logger.output_formats.append(module.writer)
        if self.fast:
            use_fused_optimizers(algorithm)
        if parallel is not None:
            parallel.join(module.session)
        if ckpt_path is not None:
            checkpoint.restore_session(Path(ckpt_path), module.session)
