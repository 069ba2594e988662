"""The stack of vectorised wrappers around the environments of one experiment."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecFrameStack,
    VecNormalize,
    VecTransposeImage,
    is_vecenv_wrapped,
)

from lit_sb3_ray.envs.keywords import check_keywords
from lit_sb3_ray.envs.monitor import EpisodeRecorder, MonitorFiles
from lit_sb3_ray.envs.spec import CONSTRUCTION_ERRORS, EnvSpec
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.models import read_statistics

# What bytes that are no pickle, or one of something else, may raise as they are read.
_UNREADABLE = (
    *(pickle.UnpicklingError, AttributeError, EOFError, ImportError, LookupError, MemoryError, OverflowError),
    *(TypeError, ValueError),
)


def build_vec_env(
    spec: EnvSpec,
    n_envs: int,
    *,
    seed: int | None,
    vec_env_cls: type[VecEnv] = DummyVecEnv,
    vec_env_kwargs: Mapping[str, Any] | None = None,
    vec_env_wrappers: Sequence[tuple[type[VecEnvWrapper], Mapping[str, Any]]] = (),
    normalize: Mapping[str, Any] | None = None,
    training: bool = True,
    frame_stack: int | None = None,
    stats_path: Path | None = None,
    stats_trusted: bool = True,
    monitor: MonitorFiles | None = None,
) -> VecEnv:
    """Builds the environments and everything around them, in rl_zoo3's order.

    Inside out: the environments of `spec`, the vectorised environment (seeded for its first reset), the episode recorder,
    `vec_env_wrappers`, VecNormalize, VecFrameStack, and VecTransposeImage where an image has its channels last.

    Args:
        spec: Recipe of one environment.
        n_envs: How many of them.
        seed: Environment `i` is reset with `seed + i`; None draws one from numpy's global generator, as SB3 does.
        vec_env_cls: What steps them together; called with the list of builders.
        vec_env_kwargs: Further arguments of `vec_env_cls`.
        vec_env_wrappers: Wrappers with their arguments, the innermost first.
        normalize: Arguments of VecNormalize; None for none.
        training: False freezes the statistics and leaves rewards as they are, for evaluation.
        frame_stack: How many observations to stack; None for none.
        stats_path: Saved VecNormalize to continue with; its own arguments then replace `normalize`.
        stats_trusted: Whether that file is read as any pickle is, which runs what is in it; see `untrusted.models`.
        monitor: Where to write the episodes; None writes none.

    Returns:
        The outermost wrapper. What was built is closed if a later part fails.

    Raises:
        ConfigError: See `EnvSpec.check`; also a wrapper's or VecNormalize's argument that does not exist or does not suit
            it, and statistics
            that cannot be read or belong to other observations.
    """
    for wrapper, arguments in vec_env_wrappers:
        check_keywords(wrapper, arguments, what=f"argument of {wrapper.__name__}", where=spec.where, positional=1)
    if normalize is not None:
        check_keywords(VecNormalize, normalize, what="normalize key", where=spec.where, positional=1)
    if frame_stack is not None and frame_stack < 1:
        raise ConfigError(f"frame_stack must be at least 1, got {frame_stack}")
    check_keywords(
        vec_env_cls, vec_env_kwargs or {}, what=f"vec_env_kwargs key of {vec_env_cls.__name__}", where=spec.where, positional=1
    )
    factories = spec.factories(n_envs, seed)
    with contextlib.ExitStack() as undo:
        # VecEnv's own constructor takes spaces; the classes that step environments take builders.
        env: VecEnv = vec_env_cls(factories, **(vec_env_kwargs or {}))  # type: ignore[arg-type]
        undo.callback(env.close)
        env.seed(seed)
        if monitor is not None:
            env = EpisodeRecorder(env, monitor.folder, spec.env_id, _monitor_columns(spec), monitor.offsets, monitor.learners)
        env = surround(
            env,
            spec,
            vec_env_wrappers=vec_env_wrappers,
            normalize=normalize,
            training=training,
            frame_stack=frame_stack,
            stats_path=stats_path,
            stats_trusted=stats_trusted,
        )
        undo.pop_all()
    return env


def surround(
    env: VecEnv,
    spec: EnvSpec,
    *,
    vec_env_wrappers: Sequence[tuple[type[VecEnvWrapper], Mapping[str, Any]]] = (),
    normalize: Mapping[str, Any] | None = None,
    training: bool = True,
    frame_stack: int | None = None,
    stats_path: Path | None = None,
    stats_trusted: bool = True,
) -> VecEnv:
    """Puts the vectorised wrappers around environments; see `build_vec_env` for arguments, order and errors."""
    for wrapper, arguments in vec_env_wrappers:
        env = _wrap(spec, wrapper, env, arguments)
    if stats_path is not None:
        env = _load_normalize(env, stats_path, training=training, trusted=stats_trusted)
    elif normalize is not None:
        frozen = {} if training else {"norm_reward": False, "training": False}
        env = _wrap(spec, VecNormalize, env, {**normalize, **frozen})
    if frame_stack is not None:
        env = _wrap(spec, VecFrameStack, env, {"n_stack": frame_stack})
    return VecTransposeImage(env) if _needs_transpose(env) else env


def _wrap(spec: EnvSpec, wrapper: type[VecEnvWrapper], env: VecEnv, arguments: Mapping[str, Any]) -> VecEnv:
    try:
        return wrapper(env, **arguments)
    except ConfigError:
        raise
    except CONSTRUCTION_ERRORS as error:
        raise spec.unwrappable(wrapper, error) from error


def _monitor_columns(spec: EnvSpec) -> tuple[str, ...]:
    """Columns that the monitor's keywords add, in SB3's order."""
    return (*spec.monitor_kwargs.get("reset_keywords", ()), *spec.monitor_kwargs.get("info_keywords", ()))


def _load_normalize(env: VecEnv, path: Path, *, training: bool, trusted: bool) -> VecNormalize:
    """Wraps the environment in a saved VecNormalize, which goes on or stands still."""
    try:
        if trusted:
            loaded = VecNormalize.load(str(path), env)
        else:
            loaded = read_statistics(path)
            loaded.set_venv(env)
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"normalisation statistics {str(path)!r} cannot be read: {error.strerror or error}") from error
    except _UNREADABLE as error:
        raise ConfigError(f"{str(path)!r} holds no normalisation statistics of SB3: {error}") from error
    except AssertionError as error:
        raise ConfigError(f"normalisation statistics {str(path)!r} belong to other observations: {error}") from error
    loaded.training = training
    if not training:
        loaded.norm_reward = False
    return loaded


def _needs_transpose(env: VecEnv) -> bool:
    """Tells whether an observation is an image with its channels last and nothing transposes it yet."""
    if is_vecenv_wrapped(env, VecTransposeImage):
        return False
    space = env.observation_space
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else (space,)
    return any(is_image_space(part) and not is_image_space_channels_first(part) for part in parts)  # type: ignore[arg-type]
