"""Training one experiment: the trainer with all that hangs on it, from the first step to the last checkpoint."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from lit_sb3_ray.envs.monitor import find_recorder
from lit_sb3_ray.experiment import own_loop, run_folder
from lit_sb3_ray.experiment.async_evaluations import LastEvaluations, discard_copies, find_async_evaluations
from lit_sb3_ray.experiment.checkpoints import CheckpointPlan, CheckpointSaver
from lit_sb3_ray.experiment.devices import threads_of_each
from lit_sb3_ray.experiment.learners import together
from lit_sb3_ray.experiment.loggers import lightning_loggers, tensorboard_folder
from lit_sb3_ray.experiment.provenance import provenance
from lit_sb3_ray.experiment.run_folder import pending_files
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.lit.checkpoint import restore_session
from lit_sb3_ray.lit.iteration import Session, is_driven, takes_masks
from lit_sb3_ray.lit.loggers import finishing_wandb
from lit_sb3_ray.lit.profilers import make_profiler
from lit_sb3_ray.lit.speed import fit_threads
from lit_sb3_ray.scale.metrics import Run

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.lit.checkpoint import Training

logger = logging.getLogger(__name__)


def train(manager: ExperimentManager, model: BaseAlgorithm) -> int | None:
    """Trains to the end of the budget, or until a signal, and takes a checkpoint there.

    Args:
        manager: The experiment, set up.
        model: Its model.

    Returns:
        The signal that ended training, if one did.

    Raises:
        NonFiniteError: Training has diverged.
        LearnerError: One of several learners is lost.
    """
    module, board = RLModule(model), _tensorboard(manager, model)
    Run.name = f"{manager.algo}/{manager.run.name}"

    def extra() -> dict[str, Any]:
        return {"monitor": _monitor_offsets(model), "tensorboard": _within(board, manager.run.path)}

    saver = CheckpointSaver(manager.run, CheckpointPlan(manager.save_freq, manager.keep_checkpoints), extra)
    saver.begin(0 if manager.checkpoint is None else int(manager.checkpoint.name))
    module.extra, module.at_boundary = saver.mark, saver.save_if_due
    threads = torch.get_num_threads()
    try:
        num_threads = manager.num_threads if manager.devices == 1 else threads_of_each(manager)
        _tell_start(manager, model, fit_threads(model, num_threads))
        with SignalStop(module.guard) as signals, finishing_wandb(manager.loggers), together(manager, module, saver):
            trainer = _trainer(manager, model, board, [signals, *_last_evaluations(manager, module)])
            if is_driven(model):
                trainer.fit(module, ckpt_path=manager.checkpoint)
                training: Training | None = module.session or _evaluate_left(manager, model)
            else:
                training = own_loop.train(trainer, module, saver, manager.checkpoint)
            if training is not None:
                saver.save(training, module.went_back_to.extra if module.went_back_to else None)
            discard_copies(manager.run)
    finally:
        torch.set_num_threads(threads)
    return signals.signum


def _trainer(manager: ExperimentManager, model: BaseAlgorithm, board: Path, own: list[pl.Callback]) -> RLTrainer:
    resumed_at = None if manager.checkpoint is None else int(manager.checkpoint.name)
    loggers = lightning_loggers(manager.loggers, manager.run, board, manager.wandb, resumed_at)
    given = [callback for callback in manager.callbacks if not isinstance(callback, BaseCallback)]
    total, folder = manager.hyperparams.n_timesteps, manager.run.path
    return RLTrainer(
        max_steps=total,
        run_name=manager.run.name,
        rl_callback=manager.rl_callbacks,
        log_interval=None if manager.log_freq > 0 or manager.log_interval < -1 else manager.log_interval or -1,
        use_masking=takes_masks(model) and manager.uses_masking(model.get_env()),
        fast=manager.fast,
        precision=manager.precision,
        callbacks=[*given, *own],
        logger=loggers,
        profiler=None if manager.profiler is None else make_profiler(manager.profiler, folder, model, total),
        enable_progress_bar=manager.show_progress,
        default_root_dir=str(folder),
    )


def _evaluate_left(manager: ExperimentManager, model: BaseAlgorithm) -> Training | None:
    """Does the evaluations that a stop has left, where nothing else is left to do."""
    evaluations = find_async_evaluations(manager.rl_callbacks)
    if evaluations is None or manager.checkpoint is None or not pending_files(manager.run.path):
        return None
    callbacks = CallbackList(manager.rl_callbacks)
    callbacks.init_callback(model)
    training = Session(model, manager.hyperparams.n_timesteps, callbacks, None)
    restore_session(manager.checkpoint, training)
    evaluations.finish()
    return training


def _last_evaluations(manager: ExperimentManager, module: RLModule) -> list[pl.Callback]:
    evaluations = find_async_evaluations(manager.rl_callbacks)
    if evaluations is None:
        return []
    evaluations.guard = module.guard
    return [LastEvaluations(evaluations)]


def _tell_start(manager: ExperimentManager, model: BaseAlgorithm, num_threads: int) -> None:
    if manager.checkpoint is None:
        told = provenance(manager.seed, str(model.device), num_threads)
        run_folder.write_yaml(manager.run.path / "provenance.yml", told)
        return
    steps, total = int(manager.checkpoint.name), manager.hyperparams.n_timesteps
    if steps >= total:
        logger.warning("Nothing is left to do: the run stands at %d of %d env steps; a larger -n extends it", steps, total)


def _tensorboard(manager: ExperimentManager, model: BaseAlgorithm) -> Path:
    """The folder of the run's TensorBoard events: the one it had, or a new one."""
    known = manager.resumed_extra.get("tensorboard")
    return manager.run.path / known if known else tensorboard_folder(model, manager.run, manager.tensorboard_log)


def _within(path: Path, run: Path) -> str:
    """A path as a checkpoint keeps it: relative where it lies in the run folder, which may be moved."""
    return str(path.relative_to(run) if path.is_relative_to(run) else path.absolute())


def _monitor_offsets(model: BaseAlgorithm) -> dict[str, int] | None:
    env = model.get_env()
    recorder = None if env is None else find_recorder(env)
    return None if recorder is None else recorder.offsets()
