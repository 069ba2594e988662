"""Environment wrappers a configuration can name, each under `lit_sb3_ray.envs.wrappers.<Class>`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_contrib.common.wrappers import TimeFeatureWrapper
    from stable_baselines3.common.atari_wrappers import AtariWrapper

    from lit_sb3_ray.envs.wrappers.actions import ActionMasker, ActionNoiseWrapper, ActionSmoothingWrapper
    from lit_sb3_ray.envs.wrappers.frames import FrameSkip, YAMLCompatResizeObservation
    from lit_sb3_ray.envs.wrappers.history import HistoryWrapper, HistoryWrapperObsDict
    from lit_sb3_ray.envs.wrappers.mask_velocity import MaskVelocityWrapper
    from lit_sb3_ray.envs.wrappers.rewards import DelayedRewardWrapper, TruncatedOnSuccessWrapper

__all__ = [
    "ActionMasker",
    "ActionNoiseWrapper",
    "ActionSmoothingWrapper",
    "AtariWrapper",
    "DelayedRewardWrapper",
    "FrameSkip",
    "HistoryWrapper",
    "HistoryWrapperObsDict",
    "MaskVelocityWrapper",
    "TimeFeatureWrapper",
    "TruncatedOnSuccessWrapper",
    "YAMLCompatResizeObservation",
]

# The last two are SB3's own and bring torch along, so nothing is imported before it is asked for.
_HOME = {
    "ActionMasker": f"{__name__}.actions",
    "ActionNoiseWrapper": f"{__name__}.actions",
    "ActionSmoothingWrapper": f"{__name__}.actions",
    "DelayedRewardWrapper": f"{__name__}.rewards",
    "FrameSkip": f"{__name__}.frames",
    "HistoryWrapper": f"{__name__}.history",
    "HistoryWrapperObsDict": f"{__name__}.history",
    "MaskVelocityWrapper": f"{__name__}.mask_velocity",
    "TruncatedOnSuccessWrapper": f"{__name__}.rewards",
    "YAMLCompatResizeObservation": f"{__name__}.frames",
    "AtariWrapper": "stable_baselines3.common.atari_wrappers",
    "TimeFeatureWrapper": "sb3_contrib.common.wrappers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value
