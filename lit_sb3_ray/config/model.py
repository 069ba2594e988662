"""The hyperparameters that go to the algorithm's constructor."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.algorithms import is_stock
from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.entropy import check_entropy
from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.policies import check_policy_kwargs
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.ranges import check_ranges
from lit_sb3_ray.config.schedules import SCHEDULE_KEYS, parse_schedule
from lit_sb3_ray.config.signatures import check_keywords, coerce, signature_of
from lit_sb3_ray.errors import unknown

SPECIAL_KEYS = frozenset(
    {
        "callback",
        "env_kwargs",
        "env_wrapper",
        "frame_stack",
        "monitor_kwargs",
        "n_envs",
        "n_timesteps",
        "noise_std",
        "noise_type",
        "normalize",
        "policy",
        "use_masking",
        "vec_env_wrapper",
    }
)
"""Keys that this project handles itself, whatever the algorithm."""

RESERVED = {
    "env": "--env",
    "seed": "--seed",
    "verbose": "--verbose",
    "device": "--device",
    "tensorboard_log": "--tensorboard-log",
    "_init_setup_model": "",
}
"""Constructor arguments that are no hyperparameters, and the flags that set them."""

RENAMED = {
    "cliprange": "clip_range",
    "cliprange_vf": "clip_range_vf",
    "lam": "gae_lambda",
    "layers": "policy_kwargs",
    "nminibatches": "batch_size",
    "noptepochs": "n_epochs",
    "prioritized_replay": "replay_buffer_class",
    "random_exploration": "learning_starts",
    "vf_iters": "n_critic_updates",
}
"""Names of Stable-Baselines 2 for which the nearest spelling would be a wrong guess."""

AT_LEAST_ONE = frozenset({"batch_size", "buffer_size", "n_delta", "n_epochs", "n_steps", "n_top", "policy_delay"})
"""Counts of the algorithms that cannot be 0."""

MAX_COUNT = 2**40
"""No whole number of a configuration is above it: memory and time end earlier."""

MAPPINGS = frozenset({"policy_kwargs", "replay_buffer_kwargs", "rollout_buffer_kwargs"})
EXPRESSIONS = MAPPINGS | {"replay_buffer_class", "rollout_buffer_class"}
"""Keys whose strings are expressions, whatever the algorithm's annotations say."""

_BUFFER_FILLED_IN = {
    "buffer_size",
    "observation_space",
    "action_space",
    "device",
    "n_envs",
    "gamma",
    "gae_lambda",
    "env",
    "optimize_memory_usage",
}


_DEFAULT_BUFFERS = {
    "replay_buffer": "stable_baselines3.common.buffers:ReplayBuffer",
    "rollout_buffer": "stable_baselines3.common.buffers:RolloutBuffer",
}


def check_key(key: Any, algorithm: type[Any], where: str) -> None:
    """Checks that a hyperparameter exists.

    Args:
        key: The key.
        algorithm: The algorithm's class.
        where: The file or flag it was read from.

    Raises:
        ConfigError: Neither the algorithm's constructor nor this project knows it, or it is set by a flag.
    """
    signature = signature_of(algorithm)
    if key in RESERVED and key in signature.parameters:
        flag = RESERVED[key]
        raise problem(f"{key!r} is no hyperparameter" + (f": use {flag}" if flag else ""), where)
    if key == "use_masking" and not learn_takes(algorithm, "use_masking"):
        raise problem(f"'use_masking' is for algorithms with action masks (ppo_mask), not for {algorithm.__name__}", where)
    if key in SPECIAL_KEYS or key in signature.parameters or (signature.is_open and isinstance(key, str)):
        return
    known = (set(signature.parameters) | SPECIAL_KEYS) - set(RESERVED) - {"use_masking"}
    if RENAMED.get(str(key)) in known:
        raise problem(f"unknown {algorithm.__name__} hyperparameter {key!r}: did you mean {RENAMED[key]!r}?", where)
    raise unknown(f"{algorithm.__name__} hyperparameter", str(key), known, where)


def learn_takes(algorithm: type[Any], name: str) -> bool:
    """Tells whether the algorithm's `learn` has a parameter of that name."""
    return name in inspect.signature(algorithm.learn).parameters


def resolve_model_kwargs(
    values: Mapping[str, Any], policy: str | type[Any], algorithm: type[Any], places: Mapping[str, str]
) -> dict[str, Any]:
    """Gives the constructor's arguments their types: schedules, classes, dicts, numbers.

    Args:
        values: The hyperparameters of the constructor; their keys are known to be valid.
        policy: The resolved policy.
        algorithm: The algorithm's class.
        places: Where each key was read from.

    Raises:
        ConfigError: A value is of the wrong type, or names something that is not there.
    """
    parameters = signature_of(algorithm).parameters
    kwargs: dict[str, Any] = {}
    for key, value in values.items():
        where = f"{key}, {places[key]}"
        annotation = parameters[key].annotation if key in parameters else inspect.Parameter.empty
        if key in SCHEDULE_KEYS or _is_schedule(annotation):
            kwargs[key] = parse_schedule(value, where, optional=type(None) in typing.get_args(annotation))
        else:
            kwargs[key] = coerce(value, annotation, where)
        if key in EXPRESSIONS and isinstance(kwargs[key], str):  # The annotation left it open.
            kwargs[key] = parse_expression(value, where)
        if key in MAPPINGS and not isinstance(kwargs[key], Mapping | None):
            raise problem(f"expected a mapping of arguments, not {value!r}", where)
    _check_counts(kwargs, places)
    _check_train_freq(kwargs, places)
    if is_stock(algorithm):
        check_entropy(kwargs, places)
        _check_batch(kwargs, parameters, places)
    if "policy_kwargs" in kwargs:
        where = f"policy_kwargs, {places['policy_kwargs']}"
        kwargs["policy_kwargs"] = check_policy_kwargs(kwargs["policy_kwargs"], policy, algorithm, where)
    check_ranges(values, kwargs, places)
    for name in ("replay_buffer", "rollout_buffer"):
        _check_buffer(kwargs, name, algorithm, places)
    return kwargs


def _is_schedule(annotation: Any) -> bool:
    members = typing.get_args(annotation)
    callable_origin = typing.get_origin(typing.Callable[..., Any])
    return float in members and any((typing.get_origin(member) or member) is callable_origin for member in members)


def _check_counts(kwargs: Mapping[str, Any], places: Mapping[str, str]) -> None:
    for key, value in kwargs.items():
        if key in AT_LEAST_ONE and isinstance(value, int) and value < 1:
            raise problem(f"expected a whole number from 1 up, not {value}", f"{key}, {places[key]}")
        if isinstance(value, int) and value > MAX_COUNT:
            raise problem(f"expected at most {MAX_COUNT}, not a number of {len(str(value))} digits", f"{key}, {places[key]}")


def _check_train_freq(kwargs: Mapping[str, Any], places: Mapping[str, str]) -> None:
    frequency = kwargs.get("train_freq")
    if isinstance(frequency, tuple) and frequency[1] not in ("step", "episode"):
        raise unknown("unit", str(frequency[1]), ("step", "episode"), f"train_freq, {places['train_freq']}")
    count = frequency[0] if isinstance(frequency, tuple) else frequency
    if isinstance(count, int) and count < 1:
        raise problem(f"expected a number of steps or episodes from 1 up, not {count}", f"train_freq, {places['train_freq']}")


def _check_batch(kwargs: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter], places: Mapping[str, str]) -> None:
    """Refuses batches of one where each is normalised by its own spread, which is NaN then."""
    if not {"clip_range", "normalize_advantage"} <= parameters.keys() or not kwargs.get("normalize_advantage", True):
        return
    if kwargs.get("batch_size") == 1:
        text = "expected a whole number from 2 up, not 1, since advantages are normalised in each batch"
        raise problem(text, f"batch_size, {places['batch_size']}")


def check_episodic(kwargs: Mapping[str, Any], n_envs: int, where: str) -> None:
    """Checks that updates are not counted in episodes where several environments end theirs at different times.

    Args:
        kwargs: What `resolve_model_kwargs` returned.
        n_envs: Number of training environments.
        where: The key and the file or flag train_freq was read from.

    Raises:
        ConfigError: They are.
    """
    frequency = kwargs.get("train_freq")
    if n_envs > 1 and isinstance(frequency, tuple) and frequency[1] == "episode":
        raise problem(f"with n_envs {n_envs}, train_freq is to be in steps, not {list(frequency)}", where)


def _check_buffer(kwargs: Mapping[str, Any], name: str, algorithm: type[Any], places: Mapping[str, str]) -> None:
    cls, arguments = kwargs.get(f"{name}_class"), kwargs.get(f"{name}_kwargs")
    if cls is None and arguments and is_stock(algorithm):
        cls = resolve_class(_DEFAULT_BUFFERS[name], ClassKind.BUFFER, name)
    if arguments and isinstance(cls, type):
        needed = set(signature_of(cls).parameters)
        check_keywords(cls, arguments, _BUFFER_FILLED_IN & needed, f"{name}_kwargs, {places[f'{name}_kwargs']}")
