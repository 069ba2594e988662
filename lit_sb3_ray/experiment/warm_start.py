"""Warm starts: a trained model's weights, with counters and schedules from the beginning."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.config.hyperparams import Hyperparams
from lit_sb3_ray.config.plain import copy_containers
from lit_sb3_ray.experiment.origin import is_trusted_model
from lit_sb3_ray.experiment.run_folder import FINAL_BUFFER, RunFolder
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.untrusted.models import read_custom_objects

logger = logging.getLogger(__name__)

REMADE = ("lr_schedule", "exploration_schedule")
"""Functions that every model makes anew as it is loaded."""


def warm_start(
    path: Path, hyperparams: Hyperparams, env: VecEnv, options: dict[str, Any], *, truncate_last_trajectory: bool
) -> BaseAlgorithm:
    """Loads a model to train on, and the replay buffer that lies beside it.

    Args:
        path: The model's `.zip`.
        hyperparams: Go over the model's own.
        env: Training envs.
        options: `seed`, `verbose` and `device`.
        truncate_last_trajectory: Take a HER buffer's last trajectory as ended.

    Raises:
        ConfigError: The file cannot be loaded, or was downloaded and holds what is not read from others' files.
    """
    kwargs = {name: value for name, value in hyperparams.model_kwargs.items() if name != "policy_kwargs"}
    objects = None
    if not is_trusted_model(path):
        # The model makes these anew, or the hyperparameters say them.
        objects = read_custom_objects(path, dict.fromkeys((*REMADE, *kwargs)))
    with refusing(f"-i {str(path)!r} cannot be loaded"):
        model: BaseAlgorithm = hyperparams.algo_class.load(
            path, env=env, tensorboard_log=None, custom_objects=objects, **options, **copy_containers(kwargs)
        )
    logger.info("Warm start from %s: counters and schedules begin anew (--resume continues a run instead)", path)
    buffer = path.with_name(FINAL_BUFFER)
    if buffer.exists() and hasattr(model, "load_replay_buffer"):
        with refusing(f"{str(buffer)!r}, the replay buffer beside -i, cannot be loaded"):
            model.load_replay_buffer(buffer, truncate_last_traj=truncate_last_trajectory)
    return model


def warm_statistics(path: str, env_id: str) -> Path | None:
    """The normalisation statistics that belong to a model; None where there are none.

    Args:
        path: The model's `.zip`, in its run folder.
        env_id: The environment's id.
    """
    model = Path(path)
    statistics = RunFolder(model.parent, env_id).statistics_of(model)
    return statistics if statistics.exists() else None
