"""Wrappers that a run from strangers must not bring along: those that write files wherever their arguments say."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.pickles import TRUST

_WRITERS = {
    "gymnasium.wrappers": "RecordVideo",
    "stable_baselines3.common.monitor": "Monitor",
    "stable_baselines3.common.vec_env": "VecMonitor",
    "stable_baselines3.common.vec_env.vec_video_recorder": "VecVideoRecorder",
}


def refuse_writers(wrappers: Iterable[tuple[type[Any], Any]], where: str) -> None:
    """Checks the wrappers that a downloaded run names.

    Args:
        wrappers: Classes with their arguments.
        where: The file that names them.

    Raises:
        ConfigError: One of them writes files.
    """
    writers = tuple(getattr(importlib.import_module(module), name) for module, name in _WRITERS.items())
    for wrapper, _ in wrappers:
        if issubclass(wrapper, writers):
            raise ConfigError(f"{where} was refused: the wrapper {wrapper.__name__} that it names writes files; {TRUST}")
