"""Making the experiments of a study's trials, in whatever process, out of the study's own manager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ray import cloudpickle

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

# From this verbosity on a trial's model tells what it does.
TELLS_ALL = 2


def trial_settings(manager: ExperimentManager) -> dict[str, Any]:
    """Collects the settings that a study's manager hands on to its trials, by the constructor's names."""
    return {
        "args": None,
        "algo": manager.algo,
        "env_id": manager.env_id,
        "log_folder": manager.log_folder,
        "n_timesteps": manager.n_timesteps,
        "eval_freq": 0,
        "n_eval_episodes": manager.n_eval_episodes,
        "hyperparams": copy.deepcopy(manager.custom_hyperparams),
        "env_kwargs": manager.env_kwargs,
        "eval_env_kwargs": manager.eval_env_kwargs,
        "seed": manager.seed,
        "verbose": manager.verbose if manager.verbose >= TELLS_ALL else 0,
        "vec_env_type": manager.vec_env_type,
        "n_eval_envs": manager.n_eval_envs,
        "device": manager.device,
        "config": manager.config,
        "n_envs": manager.given_n_envs,
        "callbacks": copy.deepcopy(manager.callbacks),
        "fast": manager.fast,
        "precision": manager.precision,
        "num_threads": manager.num_threads,
        "gym_packages": manager.gym_packages,
        "envs_per_actor": manager.envs_per_actor,
        "env_cpus": manager.env_cpus,
        "env_timeout": manager.env_timeout,
        "max_env_restarts": manager.max_env_restarts,
        "placement": manager.placement,
    }


@dataclass(frozen=True)
class TrialMaker:
    """Makes the experiments of a study's trials, in whatever process.

    Attributes:
        manager_class: `ExperimentManager`, or the user's own.
        settings: Its constructor's arguments.
        hooks: Attributes that are set on it.
    """

    manager_class: type[ExperimentManager]
    settings: dict[str, Any]
    hooks: dict[str, Any]

    @classmethod
    def of(cls, manager: ExperimentManager) -> TrialMaker:
        """Takes a study's manager as the model of its trials'."""
        hooks = {"default_vec_env_cls": manager.default_vec_env_cls, "vec_env_kwargs": manager.vec_env_kwargs}
        return cls(type(manager), trial_settings(manager), hooks)

    def __call__(self, hyperparams: Mapping[str, Any], seed: int) -> ExperimentManager:
        """Makes one.

        Args:
            hyperparams: The trial's hyperparameters, which go over the file's; those of the command line go over them.
            seed: Its seed.
        """
        made = self.manager_class(**{**self.settings, "seed": seed})
        for name, value in self.hooks.items():
            setattr(made, name, value)
        made.trial_hyperparams = dict(hyperparams)
        return made


def packed(maker: TrialMaker) -> Callable[[Mapping[str, Any], int], ExperimentManager]:
    """Makes a maker of what another process can unpack before it knows where that one's modules are."""
    return partial(_make, cloudpickle.dumps(maker))  # type: ignore[no-untyped-call]


def _make(content: bytes, hyperparams: Mapping[str, Any], seed: int) -> ExperimentManager:
    maker: TrialMaker = cloudpickle.loads(content)
    return maker(hyperparams, seed)
