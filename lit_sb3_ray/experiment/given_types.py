"""The types of what an experiment is given from Python, where no parser has looked at it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence, Set
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from pytorch_lightning.loggers import Logger

from lit_sb3_ray.config.hyperparams import MAX_ENVS, MAX_TIMESTEPS
from lit_sb3_ray.config.ranges import MAX_SEED
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.study_options import StudyOptions
from lit_sb3_ray.lit.loggers import WandbSettings
from lit_sb3_ray.scale.ray_settings import RaySettings

_WHOLE = (
    *("n_timesteps", "eval_freq", "n_eval_episodes", "save_freq", "n_trials", "n_startup_trials", "seed", "log_interval"),
    *("verbose", "n_eval_envs", "keep_checkpoints", "log_freq", "num_threads", "devices", "seeds_per_trial"),
)
_WHOLE_OR_NONE = ("max_total_trials", "n_jobs", "n_evaluations", "trial_id", "n_envs")
_NUMBER_OR_NONE = ("env_cpus", "env_timeout")
_FLAGS = (
    *("optimize_hyperparameters", "truncate_last_trajectory", "save_replay_buffer", "no_optim_plots", "show_progress"),
    *("fast", "async_eval"),
)
_TEXTS = ("algo", "env_id", "sampler", "pruner", "vec_env_type", "precision", "trial_objective")
_TEXT_OR_NONE = ("uuid_str", "storage", "study_name", "profiler", "placement", "search_space")
_PATH_OR_NONE = ("tensorboard_log", "trained_agent", "optimization_log_path", "config", "resume")
_MAPPING_OR_NONE = ("hyperparams", "env_kwargs", "eval_env_kwargs")
_KINDS = {"wandb": WandbSettings, "ray_settings": RaySettings, "study_options": StudyOptions}
_LIST_OR_NONE = ("callbacks", "loggers", "gym_packages")


def check_types(given: Mapping[str, Any]) -> dict[str, int]:
    """Refuses arguments of the wrong type.

    Args:
        given: Arguments of `ExperimentManager` by their names.

    Returns:
        Those that are whole numbers, as plain ones: such as `1e5` and numpy's count, too.

    Raises:
        ConfigError: One has another type, or is a seed that no generator takes.
    """
    numbers = {name: _whole(name, given[name]) for name in _WHOLE}
    numbers |= {name: _whole(name, given[name]) for name in _WHOLE_OR_NONE if given[name] is not None}
    for name, number in numbers.items():
        most = MAX_ENVS if name.endswith("_envs") else MAX_TIMESTEPS
        if number > most:
            raise ConfigError(f"{name} must be at most {most}, not {number}")
    if not 0 <= numbers["seed"] <= MAX_SEED:
        raise ConfigError(f"seed must be a whole number from 0 to {MAX_SEED}, not {numbers['seed']}")
    _check(given, _NUMBER_OR_NONE, "a number or None", lambda value: value is None or _is_number(value))
    _check(given, _FLAGS, "True or False", lambda value: isinstance(value, int | np.bool_) and value in (False, True))
    _check(given, _TEXTS, "a string", lambda value: isinstance(value, str))
    _check(given, _TEXT_OR_NONE, "a string", lambda value: isinstance(value, str | None))
    _check(given, ("log_folder",), "a path", lambda value: isinstance(value, str | os.PathLike) and str(value) != "")
    _check(given, _PATH_OR_NONE, "a path", lambda value: isinstance(value, str | os.PathLike | None))
    _check(given, ("device",), "a device", lambda value: isinstance(value, str | torch.device))
    _check(
        given, ("args",), "a Namespace, a dict or None", lambda value: isinstance(value, argparse.Namespace | Mapping | None)
    )
    _check(given, _MAPPING_OR_NONE, "a dict with strings as keys", _is_mapping_or_none)
    _check(
        given,
        _LIST_OR_NONE,
        "a list",
        lambda value: isinstance(value, Sequence | Set | None) and not isinstance(value, str | bytes),
    )
    _check(given, ("gym_packages",), "a list of names", lambda value: all(isinstance(name, str) for name in value or ()))
    _check(given, ("loggers",), "a list of names or Lightning loggers", _are_loggers)
    for name, kind in _KINDS.items():
        _check(given, (name,), f"of {kind.__name__}", lambda value, kind=kind: value is None or isinstance(value, kind))
    return numbers


def _check(given: Mapping[str, Any], names: Sequence[str], what: str, is_right: Any) -> None:
    for name in names:
        if not is_right(given[name]):
            raise ConfigError(f"{name} must be {what}, not {given[name]!r}")


def _are_loggers(value: Any) -> bool:
    return all(isinstance(item, str | Logger) for item in value or ())


def _whole(name: str, value: Any) -> int:
    is_flag = isinstance(value, bool) and name != "verbose"
    if not is_flag and isinstance(value, Integral):
        return int(value)
    if not is_flag and isinstance(value, Real) and float(value).is_integer():
        return int(float(value))
    raise ConfigError(f"{name} must be a whole number, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_mapping_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping) and all(isinstance(key, str) for key in value))
