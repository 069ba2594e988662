"""The settings of `train` by name, with their defaults: the flags of the command line and what `args.yml` holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lit_sb3_ray.errors import ConfigError

RAY_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "ray_address": "",
        "ray_num_cpus": None,
        "ray_num_gpus": None,
        "ray_object_store_memory": None,
        "ray_dashboard": False,
        "py_modules": (),
        "working_dir": "",
        "env_vars": (),
    }
)
"""Settings of where a command is carried out. They are no part of what it does: nothing keeps them, no resume repeats them."""


TRAIN_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "algo": "ppo",
        "env": "CartPole-v1",
        "tensorboard_log": "",
        "trained_agent": "",
        "truncate_last_trajectory": True,
        "n_timesteps": -1,
        "num_threads": -1,
        "log_interval": -1,
        "eval_freq": 25000,
        "optimization_log_path": None,
        "eval_episodes": 5,
        "n_eval_envs": 1,
        "save_freq": -1,
        "save_replay_buffer": False,
        "log_folder": "logs",
        "seed": -1,
        "vec_env": "auto",
        "device": "auto",
        "n_trials": 500,
        "max_total_trials": None,
        "optimize_hyperparameters": False,
        "no_optim_plots": False,
        "n_jobs": None,
        "sampler": "tpe",
        "pruner": "asha",
        "n_startup_trials": 10,
        "n_evaluations": None,
        "storage": None,
        "study_name": None,
        "trial_id": None,
        "verbose": 1,
        "gym_packages": (),
        "env_kwargs": None,
        "eval_env_kwargs": None,
        "hyperparams": None,
        "conf_file": None,
        "uuid": False,
        "track": False,
        "wandb_project_name": "sb3",
        "wandb_entity": None,
        "wandb_group": None,
        "wandb_tags": (),
        "progress": False,
        "resume": "",
        "dry_run": False,
        "logger": None,
        "fast": False,
        "precision": "32-true",
        "profiler": None,
        "keep_checkpoints": 2,
        "log_freq": -1,
        "async_eval": False,
        "n_envs": None,
        "search_space": None,
        "objective": "last",
        "seeds_per_trial": 1,
        "warm_start": False,
        "cpus_per_trial": 1.0,
        "gpus_per_trial": 0.0,
        "max_failures": 3,
        "checkpoint_every": 30.0,
        "time_budget": None,
        "retrain_best": 0,
        "storage_path": "",
        "join": "",
        "from_study": None,
        "envs_per_actor": None,
        "env_cpus": None,
        "env_timeout": None,
        "max_env_restarts": 3,
        "placement": None,
        "devices": 1,
        **RAY_DEFAULTS,
    }
)
"""The 43 settings rl_zoo3 has, in its order and with its names, then this package's own."""


def train_arguments(given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Fills settings up with the defaults.

    Args:
        given: Settings that differ from the defaults, or that are not listed here at all (kept as they are).

    Returns:
        A new dict of plain, separately owned values, fit for `args.yml`.
    """
    filled = {**TRAIN_DEFAULTS, **(given or {})}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in filled.items()}


RESUME_MAY_CHANGE = frozenset(
    {
        "async_eval",
        "device",
        "dry_run",
        "env_cpus",
        "env_timeout",
        "envs_per_actor",
        "eval_freq",
        "keep_checkpoints",
        "log_freq",
        "log_interval",
        "max_env_restarts",
        "n_timesteps",
        "num_threads",
        "placement",
        "profiler",
        "progress",
        "resume",
        "save_freq",
        "save_replay_buffer",
        "vec_env",
        "verbose",
        *RAY_DEFAULTS,
    }
)
"""Settings that may be given anew with `--resume`: none of them changes what has been trained so far."""


STUDY_RESUME_MAY_CHANGE = frozenset(
    {
        "checkpoint_every",
        "cpus_per_trial",
        "dry_run",
        "env_cpus",
        "envs_per_actor",
        "gpus_per_trial",
        "join",
        "max_failures",
        "max_total_trials",
        "n_jobs",
        "n_startup_trials",
        "n_trials",
        "no_optim_plots",
        "num_threads",
        "optimization_log_path",
        "optimize_hyperparameters",
        "placement",
        "resume",
        "retrain_best",
        "sampler",
        "storage",
        "study_name",
        "time_budget",
        "verbose",
        *RAY_DEFAULTS,
    }
)
"""Settings of a study that may be given anew when it is gone on with: none of them changes what a trial is worth."""


FROM_STUDY = frozenset(
    {
        "algo",
        "conf_file",
        "device",
        "env",
        "env_kwargs",
        "eval_env_kwargs",
        "eval_episodes",
        "fast",
        "gym_packages",
        "hyperparams",
        "n_envs",
        "n_eval_envs",
        "n_timesteps",
        "precision",
        "vec_env",
    }
)
"""Settings of a study that a run has which trains as one of its trials did."""


def resumed_arguments(saved: Mapping[str, Any], given: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Takes a run's settings and lays over them what was given anew for going on with it.

    Args:
        saved: The run's settings, as its `args.yml` holds them.
        given: What the command line named, `resume` among it.
        source: Where `saved` comes from, for the error's text.

    Returns:
        The settings to go on with.

    Raises:
        ConfigError: Something given contradicts the run, such as another environment.
    """
    for name, value in given.items():
        if name == "hyperparams":
            raise ConfigError(f"-params with --resume: the run {source} keeps its own hyperparameters (config.yml)")
        if name not in RESUME_MAY_CHANGE and saved.get(name, TRAIN_DEFAULTS.get(name)) != value:
            raise ConfigError(
                f"--{name.replace('_', '-')} {value!r} contradicts --resume: the run {source} has "
                f"{saved.get(name)!r}; leave the flag out, or start a new run"
            )
    anew = {name: value for name, value in given.items() if name in RESUME_MAY_CHANGE}
    if anew.get("n_timesteps", 1) <= 0:
        del anew["n_timesteps"]
    return train_arguments({**saved, "dry_run": False, **anew})
