"""Environments: the picklable recipe of one, the stack built from it, our wrappers, and the families they come from."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lit_sb3_ray.envs.families import (
        entry_point,
        is_atari,
        is_bullet,
        is_minigrid,
        is_panda_gym,
        is_robotics_env,
        monitor_defaults,
        register_env,
    )
    from lit_sb3_ray.envs.monitor import EpisodeRecorder, MonitorFiles, find_recorder, truncate_monitor_files
    from lit_sb3_ray.envs.spec import EnvFactory, EnvSpec
    from lit_sb3_ray.envs.vector import build_vec_env

__all__ = [
    "EnvFactory",
    "EnvSpec",
    "EpisodeRecorder",
    "MonitorFiles",
    "build_vec_env",
    "entry_point",
    "find_recorder",
    "is_atari",
    "is_bullet",
    "is_minigrid",
    "is_panda_gym",
    "is_robotics_env",
    "monitor_defaults",
    "register_env",
    "truncate_monitor_files",
]

# monitor and vector need SB3, hence torch; an id can be looked up without either.
_HOME = {
    "EnvFactory": "spec",
    "EnvSpec": "spec",
    "EpisodeRecorder": "monitor",
    "MonitorFiles": "monitor",
    "find_recorder": "monitor",
    "truncate_monitor_files": "monitor",
    "build_vec_env": "vector",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOME.get(name, 'families')}")
    value = globals()[name] = getattr(home, name)
    return value
