"""What each of several learners of one run has of the run's hyperparameters: together they come to what one would have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lit_sb3_ray.config.hyperparams import Hyperparams
from lit_sb3_ray.config.signatures import signature_of
from lit_sb3_ray.errors import ConfigError

ON_POLICY = ("A2C", "MaskablePPO", "PPO", "RecurrentPPO")
OFF_POLICY = ("DDPG", "DQN", "QRDQN", "SAC", "TD3", "TQC")
LEARNING_TOGETHER = (*ON_POLICY, *OFF_POLICY)
"""Algorithms that get all their gradients by `backward()`, and whose networks have no running statistics of their own.

TRPO searches for its step along gradients that it takes otherwise, CrossQ normalises batches, ARS has no gradients.
"""
# In env steps, and compared with the steps of the learner's own envs.
_INTERVALS = ("DQN", "QRDQN")
_LIBRARIES = ("stable_baselines3", "sb3_contrib")


def check_devices(devices: int, *, studies: bool) -> None:
    """Refuses a number of learners that has no meaning.

    Args:
        devices: How many learners.
        studies: Whether hyperparameters are searched.

    Raises:
        ConfigError: It is none.
    """
    if type(devices) is not int or devices < 1:
        raise ConfigError(f"devices must be a whole number, 1 or more, not {devices!r}")
    if devices > 1 and studies:
        raise ConfigError(f"--devices {devices} with a study: a trial trains on one device; others are for trials beside it")


def check_callbacks(callbacks: Iterable[Any], devices: int) -> None:
    """Refuses callbacks that several learners cannot have.

    Args:
        callbacks: Callbacks, or their classes with arguments. A class may say in `only_for_one_learner` why it is for one.
        devices: How many learners.

    Raises:
        ConfigError: One of them is for one learner alone.
    """
    for item in callbacks if devices > 1 else ():
        cls = item[0] if isinstance(item, tuple) else type(item)
        why = getattr(cls, "only_for_one_learner", None)
        if why is not None:
            raise ConfigError(f"--devices {devices} with {cls.__name__}: {why}")


def share(hyperparams: Hyperparams, n_envs: int, devices: int) -> Hyperparams:
    """Gives one of several learners its part.

    Envs, minibatches and replay buffer are divided, and intervals in env steps that are counted by each learner; what is
    counted over all, such as `learning_starts`, stays.

    Args:
        hyperparams: Those of the run.
        n_envs: The run's training envs.
        devices: How many learners.

    Returns:
        The learner's own, its number of envs among them.

    Raises:
        ConfigError: The algorithm cannot be trained by several learners, or something cannot be divided.
    """
    if devices == 1:
        return replace(hyperparams, n_envs=n_envs)
    name = _known_as(hyperparams, devices)
    _check_passes(hyperparams, devices)
    if n_envs % devices:
        remedy = f"give --n-envs {(n_envs // devices + 1) * devices}"
        raise ConfigError(f"--devices {devices}: {n_envs} envs cannot be divided among {devices} learners; {remedy}")
    kwargs = dict(hyperparams.model_kwargs)
    batch = _value(hyperparams, "batch_size")
    if batch is not None:
        if batch % devices:
            raise ConfigError(f"--devices {devices}: batch_size {batch} cannot be divided among {devices} learners")
        if batch == devices and _value(hyperparams, "normalize_advantage"):
            raise ConfigError(f"--devices {devices}: batch_size {batch} leaves each of {devices} learners one sample, too few")
        kwargs["batch_size"] = batch // devices
    if name in OFF_POLICY:
        kwargs["buffer_size"] = max(1, int(_value(hyperparams, "buffer_size")) // devices)
    if name in _INTERVALS:
        kwargs["target_update_interval"] = max(1, int(_value(hyperparams, "target_update_interval")) // devices)
    return replace(hyperparams, n_envs=n_envs // devices, model_kwargs=kwargs)


def _known_as(hyperparams: Hyperparams, devices: int) -> str:
    """The name of the known algorithm that a class is, or is derived from without a loop of its own."""
    cls: type[Any] = hyperparams.algo_class
    names = [base.__name__ for base in cls.__mro__ if base.__module__.partition(".")[0] in _LIBRARIES]
    known = next((name for name in names if name in LEARNING_TOGETHER), None)
    home = getattr(cls, "learn", None)
    own = home is None or home.__module__.partition(".")[0] not in _LIBRARIES
    if known is None or own or names[0] not in LEARNING_TOGETHER:
        able = ", ".join(LEARNING_TOGETHER)
        raise ConfigError(f"--devices {devices}: {cls.__name__} cannot be trained by several learners; these can: {able}")
    return known


def _check_passes(hyperparams: Hyperparams, devices: int) -> None:
    frequency = hyperparams.model_kwargs.get("train_freq")
    unit = frequency[1] if isinstance(frequency, list | tuple) and len(frequency) == 2 else "step"
    if "episode" in str(unit):
        raise ConfigError(
            f"--devices {devices}: train_freq {frequency!r} is in episodes, which are of different lengths in each learner; "
            "give it in steps"
        )


def _value(hyperparams: Hyperparams, name: str) -> Any:
    """A hyperparameter's value, or its default; None where the algorithm has no such thing."""
    if name in hyperparams.model_kwargs:
        return hyperparams.model_kwargs[name]
    parameter = signature_of(hyperparams.algo_class).parameters.get(name)
    return None if parameter is None else parameter.default
