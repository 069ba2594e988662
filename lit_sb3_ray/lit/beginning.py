"""The beginning of a training: all that comes before its first iteration, in the order that running statistics need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit import checkpoint, iteration
from lit_sb3_ray.lit.candidates import candidate_workers
from lit_sb3_ray.lit.loggers import LightningWriter
from lit_sb3_ray.lit.speed import use_fused_optimizers
from lit_sb3_ray.lit.stop import StopStep
from lit_sb3_ray.scale.telemetry import observed

if TYPE_CHECKING:
    from lit_sb3_ray.lit.module import RLModule
    from lit_sb3_ray.lit.trainer import RLTrainer


def begin(trainer: RLTrainer, module: RLModule, ckpt_path: str | Path | None) -> None:
    """Gives a module a session, ready for its first step; none where the checkpoint has reached the budget.

    Args:
        trainer: Says how to train.
        module: The module, with its envs.
        ckpt_path: A checkpoint folder to go on from.

    Raises:
        ConfigError: An algorithm that cannot be driven, or a checkpoint that does not fit.
    """
    algorithm, lightning = module.algorithm, cast("Any", trainer)
    if not iteration.is_driven(algorithm):
        raise ConfigError(f"{type(algorithm).__name__} cannot be driven in iterations: it trains through its own learn()")
    if ckpt_path is not None:
        checkpoint.restore_algorithm(Path(ckpt_path), algorithm)
        if algorithm.num_timesteps >= trainer.max_env_steps:
            # Nothing is left to do, and a reset of the envs would already change running statistics.
            return
    default = iteration.default_log_interval(algorithm)
    # Before the envs are reset, which already changes running statistics.
    async_eval = trainer.async_eval or candidate_workers(algorithm)
    parallel = module.parallel
    if parallel is not None:
        parallel.begin(algorithm)
    session = module.session = iteration.start(
        algorithm,
        trainer.max_env_steps,
        [*([] if parallel is None else [parallel.tally]), *trainer.sb3_callbacks(), StopStep(module.guard)],
        log_interval=default if trainer.log_interval == -1 else trainer.log_interval,
        run_name=trainer.run_name,
        reset_num_timesteps=trainer.reset_num_timesteps and ckpt_path is None,
        use_masking=trainer.use_masking,
    )
    session.async_eval = async_eval
    session.profile = observed(lightning.profiler.profile, lambda: module.num_timesteps)
    module.autocast_training(trainer.train_precision)
    module.writer = LightningWriter(trainer)
    algorithm.logger.output_formats.append(module.writer)
    if trainer.fast:
        use_fused_optimizers(algorithm)
    if parallel is not None:
        parallel.join(session)
    if ckpt_path is not None:
        checkpoint.restore_session(Path(ckpt_path), session)
