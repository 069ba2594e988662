"""One entry of hyperparameters: chosen, merged, and resolved into what the experiment is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.config.classes import ClassKind
from lit_sb3_ray.config.components import Component, resolve_callbacks, resolve_components
from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.files import ConfigFile
from lit_sb3_ray.config.model import MAX_COUNT, SPECIAL_KEYS, check_episodic, check_key, resolve_model_kwargs
from lit_sb3_ray.config.noise import ActionNoiseSpec, take_noise
from lit_sb3_ray.config.normalization import parse_normalize
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.plain import copy_containers, to_plain
from lit_sb3_ray.config.policies import resolve_policy
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.signatures import check_keywords, signature_of
from lit_sb3_ray.errors import unknown

COMMAND_LINE = "--hyperparams"
TRIAL = "trial"

MAX_ENVS = 100_000
MAX_FRAMES = 10_000
MAX_TIMESTEPS = 2**53
"""Env steps are counted in floats here and there; up to this they stay exact."""


@dataclass(frozen=True)
class Hyperparams:
    """A validated entry.

    Attributes:
        algo: The algorithm as the user named it.
        algo_class: Its class.
        policy: A policy name that the algorithm knows, or a class.
        n_timesteps: The training budget, in env steps, at least 1.
        n_envs: Number of training environments, at least 1.
        model_kwargs: The constructor's arguments but for policy, env, seed, verbose, device and tensorboard_log; action noise
            is not among them (see `noise`).
        normalize: Keyword arguments for VecNormalize, or None.
        frame_stack: Number of observations to stack, or None.
        env_wrappers: Wrapper classes with their arguments, innermost first.
        vec_env_wrappers: VecEnvWrapper classes with their arguments, innermost first.
        callbacks: Callback classes with their arguments, and callbacks that are built already.
        monitor_kwargs: Keyword arguments for Monitor.
        env_kwargs: Keyword arguments for the environment.
        noise: Action noise, to be built when the action space is known, or None.
        saved: The unprocessed hyperparameters, sorted by key, in plain types.
        use_masking: Whether a masking algorithm is to ask for action masks; None to ask if the env has any.
    """

    algo: str
    algo_class: type[Any]
    policy: str | type[Any]
    n_timesteps: int
    n_envs: int = 1
    model_kwargs: dict[str, Any] = field(default_factory=dict)
    normalize: dict[str, Any] | None = None
    frame_stack: int | None = None
    env_wrappers: tuple[Component, ...] = ()
    vec_env_wrappers: tuple[Component, ...] = ()
    callbacks: tuple[Any, ...] = ()
    monitor_kwargs: dict[str, Any] = field(default_factory=dict)
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    noise: ActionNoiseSpec | None = None
    saved: dict[str, Any] = field(default_factory=dict)
    use_masking: bool | None = None


def select_entry(file: ConfigFile, env_id: str, atari: bool) -> tuple[dict[str, Any], str]:
    """Chooses the entry for an environment: its id, else `atari` for an Atari game, else `default`.

    Args:
        file: The file.
        env_id: The environment's id; of `module:Name-v0` the part behind the colon is tried too.
        atari: Whether it is an Atari game.

    Returns:
        A copy of the entry, and the key it stands under.

    Raises:
        ConfigError: The file has none of them.
    """
    candidates = [env_id, env_id.rpartition(":")[2], *(["atari"] if atari else []), "default"]
    for key in candidates:
        if key in file.entries:
            return copy_containers(file.entries[key]), key
    raise unknown("entry", env_id, file.entries, f"{file.label}, which has no 'default'")


def merge(
    entry: Mapping[str, Any], trial: Mapping[str, Any] | None = None, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Merges hyperparameters key by key: the file's, over them a trial's, over both the command line's."""
    return copy_containers({**entry, **(trial or {}), **(overrides or {})})  # type: ignore[no-any-return]


def origins(trial: Mapping[str, Any] | None = None, overrides: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Tells where the merged keys that are not the file's come from, for the messages of `resolve`."""
    return {**dict.fromkeys(trial or {}, TRIAL), **dict.fromkeys(overrides or {}, COMMAND_LINE)}


def resolve(
    raw: Mapping[str, Any],
    algo: str,
    where: str,
    *,
    n_timesteps: int | None = None,
    sources: Mapping[str, str] | None = None,
) -> Hyperparams:
    """Validates an entry and resolves everything it names, building nothing.

    Args:
        raw: The merged hyperparameters; they are left as they are.
        algo: A name in `ALGOS` or the path of an algorithm class.
        where: The file and entry they were read from, for messages.
        n_timesteps: A budget in env steps that replaces the entry's when above 0; the entry then needs none.
        sources: Where single keys were read from, if not in `where` (see `origins`).

    Raises:
        ConfigError: Anything in the entry is wrong: one line with the key, its origin, and the nearest right name.
        MissingPackageError: A wrapper, callback, policy or algorithm is in a package that is not installed.
    """
    algorithm = resolve_algorithm(algo)
    values: dict[str, Any] = copy_containers(raw)
    places = {key: (sources or {}).get(key, where) for key in values}
    for key in values:
        check_key(key, algorithm, places[key])

    def at(key: str) -> str:
        return f"{key}, {places.get(key, where)}" if key in values else where

    policy = _policy(values, algorithm, at("policy"))
    noise = _noise(values, algorithm, at("noise_type") if "noise_type" in values else at("noise_std"))
    model_values = {key: value for key, value in values.items() if key not in SPECIAL_KEYS}
    model_kwargs = resolve_model_kwargs(model_values, policy, algorithm, places)
    n_envs = _count(values.get("n_envs", 1), at("n_envs"), MAX_ENVS)
    check_episodic(model_kwargs, n_envs, at("train_freq"))
    return Hyperparams(
        algo=algo,
        algo_class=algorithm,
        policy=policy,
        n_timesteps=_budget(values, n_timesteps, at("n_timesteps")),
        n_envs=n_envs,
        model_kwargs=model_kwargs,
        normalize=parse_normalize(values.get("normalize"), model_kwargs.get("gamma"), at("normalize")),
        frame_stack=_frames(values.get("frame_stack"), at("frame_stack")),
        env_wrappers=resolve_components(values.get("env_wrapper"), ClassKind.ENV_WRAPPER, at("env_wrapper")),
        vec_env_wrappers=resolve_components(values.get("vec_env_wrapper"), ClassKind.VEC_ENV_WRAPPER, at("vec_env_wrapper")),
        callbacks=resolve_callbacks(values.get("callback"), at("callback"), algorithm),
        monitor_kwargs=_monitor_kwargs(values.get("monitor_kwargs"), at("monitor_kwargs")),
        env_kwargs=_mapping(values.get("env_kwargs"), at("env_kwargs")),
        noise=noise,
        saved={key: to_plain(raw[key]) for key in sorted(raw)},
        use_masking=_flag(values["use_masking"], at("use_masking")) if values.get("use_masking") is not None else None,
    )


def _policy(values: Mapping[str, Any], algorithm: type[Any], where: str) -> str | type[Any]:
    if "policy" not in values:
        aliases = getattr(algorithm, "policy_aliases", None) or {"MlpPolicy": None}
        raise problem(f"the entry has no policy: one of {', '.join(sorted(aliases))}, or the path of a class", where)
    return resolve_policy(values["policy"], algorithm, where)


def _noise(values: dict[str, Any], algorithm: type[Any], where: str) -> ActionNoiseSpec | None:
    noise = take_noise(values, where)
    signature = signature_of(algorithm)
    if noise is not None and "action_noise" not in signature.parameters and not signature.is_open:
        raise problem(f"{algorithm.__name__} takes no action noise", where)
    return noise


def _budget(values: Mapping[str, Any], override: int | None, where: str) -> int:
    if override is not None and override > 0:
        return _count(override, "--n-timesteps", MAX_TIMESTEPS)
    if "n_timesteps" not in values:
        raise problem("the entry has no n_timesteps: add it, or give --n-timesteps", where)
    return _count(values["n_timesteps"], where, MAX_TIMESTEPS)


def _count(value: Any, where: str, most: int = MAX_COUNT) -> int:
    number = to_number(value)
    if number is None or number < 1 or number != number or number != number // 1:
        raise problem(f"expected a whole number from 1 up, not {value!r}", where)
    if number > most:
        raise problem(f"expected at most {most}, not {value!r}", where)
    return int(number)


def _frames(value: Any, where: str) -> int | None:
    return None if value is None else _count(value, where, MAX_FRAMES)


def _flag(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise problem(f"expected true or false, not {value!r}", where)


def _mapping(value: Any, where: str) -> dict[str, Any]:
    parsed = parse_expression(value, where) if isinstance(value, str) else value
    if parsed is None:
        return {}
    if not isinstance(parsed, Mapping) or not all(isinstance(key, str) for key in parsed):
        raise problem(f"expected a mapping of arguments, not {value!r}", where)
    return dict(parsed)


def _monitor_kwargs(value: Any, where: str) -> dict[str, Any]:
    kwargs = _mapping(value, where)
    if kwargs:
        from stable_baselines3.common.monitor import Monitor

        check_keywords(Monitor, kwargs, {"env", "filename"}, where)
    return {key: _monitor_argument(key, item, where) for key, item in kwargs.items()}


def _monitor_argument(key: str, value: Any, where: str) -> Any:
    if not key.endswith("_keywords"):
        return _flag(value, f"{key}, {where}")
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise problem(f"expected a list of names, not {value!r}", f"{key}, {where}")
    return tuple(names)
