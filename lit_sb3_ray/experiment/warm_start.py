"""Warm starts: a trained model's weights, with counters and schedules from the beginning."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.config.algorithms import is_stock
from lit_sb3_ray.config.hyperparams import Hyperparams
from lit_sb3_ray.config.plain import copy_containers, to_plain
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.model_files import read_data
from lit_sb3_ray.experiment.models import build_noise
from lit_sb3_ray.experiment.origin import is_trusted_model
from lit_sb3_ray.experiment.run_folder import FINAL_BUFFER, RunFolder
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.untrusted.models import read_custom_objects

logger = logging.getLogger(__name__)

_ADDED = {"optimizer_class", "optimizer_kwargs", "use_sde", "n_critics"}

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
    if hyperparams.noise is not None:
        kwargs["action_noise"] = build_noise(hyperparams, env)
    _check_exploration(path, kwargs.get("use_sde"))
    objects, trusted = None, is_trusted_model(path)
    if not trusted:
        # The model makes these anew, or the hyperparameters say them.
        objects = read_custom_objects(path, dict.fromkeys((*REMADE, *kwargs)))
    with refusing(f"-i {str(path)!r} cannot be loaded"):
        model: BaseAlgorithm = hyperparams.algo_class.load(
            path, env=env, tensorboard_log=None, custom_objects=objects, **options, **copy_containers(kwargs)
        )
    unused = _unused(model, hyperparams)
    if unused:
        logger.warning("-i %s: %s of the hyperparameters have no effect, since the model has its own", path, ", ".join(unused))
    logger.info("Warm start from %s: counters and schedules begin anew (--resume continues a run instead)", path)
    buffer = path.with_name(FINAL_BUFFER)
    if buffer.exists() and not trusted:
        logger.warning("%s beside -i is left unread: it came with a model that was downloaded", buffer)
    elif buffer.exists() and hasattr(model, "load_replay_buffer"):
        made = model.replay_buffer  # type: ignore[attr-defined]
        with refusing(f"{str(buffer)!r}, the replay buffer beside -i, cannot be loaded"):
            model.load_replay_buffer(buffer, truncate_last_traj=truncate_last_trajectory)
            if made is not None:
                _check_buffer(made, model.replay_buffer)  # type: ignore[attr-defined]
    return model


def _check_buffer(made: Any, loaded: Any) -> None:
    """Refuses a replay buffer that the run could not go on with, and tells of one of another size."""
    if type(loaded) is not type(made):
        raise ValueError(f"it is a {type(loaded).__name__}, and the run has a {type(made).__name__}")
    if loaded.n_envs != made.n_envs:
        raise ValueError(
            f"it is of {loaded.n_envs} environments, and the run has {made.n_envs}: give --n-envs {loaded.n_envs}"
        )
    if loaded.buffer_size != made.buffer_size:
        sizes = (loaded.buffer_size * loaded.n_envs, made.buffer_size * made.n_envs)
        logger.warning("The replay buffer beside -i has room for %d env steps, which stands, not for %d", *sizes)


def _check_exploration(path: Path, use_sde: bool | None) -> None:
    """Refuses another kind of exploration than the model was made for, since its network has other weights then."""
    own = read_data(path).get("use_sde")
    if isinstance(own, bool) and use_sde is not None and own is not use_sde:
        raise ConfigError(f"-i {str(path)!r} is a model with use_sde {own}: give -params use_sde:{own}")


def _unused(model: BaseAlgorithm, hyperparams: Hyperparams) -> list[str]:
    """Names the hyperparameters that a loaded model has not taken: those of its network, and of its making."""
    unused = []
    own = getattr(model, "policy_class", None)
    aliases = getattr(hyperparams.algo_class, "policy_aliases", {})
    policy = hyperparams.policy if isinstance(hyperparams.policy, type) else aliases.get(hyperparams.policy)
    if None not in (own, policy) and own is not policy:
        unused.append("policy")
    differing = _differing(hyperparams.model_kwargs.get("policy_kwargs") or {}, getattr(model, "policy_kwargs", None) or {})
    if differing:
        unused.append(f"policy_kwargs ({', '.join(differing)})")
    if is_stock(hyperparams.algo_class) and own is not None:
        attributes = vars(hyperparams.algo_class(policy=own, env=None, _init_setup_model=False))
        unused += sorted(name for name in hyperparams.model_kwargs if name not in attributes)
    return unused


def _differing(asked: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Names the arguments of a policy that are not the same; what an algorithm adds by itself counts only if asked for."""
    names = {*asked, *(own.keys() - _ADDED)}
    return sorted(name for name in names if to_plain(asked.get(name)) != to_plain(own.get(name)))


def warm_statistics(path: str, env_id: str) -> Path | None:
    """The normalisation statistics that belong to a model; None where there are none.

    Args:
        path: The model's `.zip`, in its run folder.
        env_id: The environment's id.
    """
    model = Path(path)
    statistics = RunFolder(model.parent, env_id).statistics_of(model)
    return statistics if statistics.exists() else None
