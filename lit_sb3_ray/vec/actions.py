"""Whether what a step is asked with can be actions of the environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from lit_sb3_ray.vec.batch import CODE_OF

_WHOLE = (spaces.Discrete, spaces.MultiDiscrete)
_ARRAYS = (spaces.Box, spaces.MultiBinary, *_WHOLE)
_FRACTIONS = frozenset(code for dtype, code in CODE_OF.items() if dtype.kind == "f")


def odd_codes(space: gym.Space[Any]) -> frozenset[int]:
    """Codes of arrays (see `Batch.action_code`) whose numbers cannot be actions of a space."""
    return _FRACTIONS if isinstance(space, _WHOLE) else frozenset()


def check_actions(actions: Any, n_envs: int, space: gym.Space[Any]) -> None:
    """Refuses what cannot be one action for each environment.

    Args:
        actions: The actions.
        n_envs: How many environments there are.
        space: The action space of each.

    Raises:
        ValueError: They are too few or too many, or an array of another shape or type than the space's. Other sequences go to
            the environments as they are, whatever these make of them.
    """
    try:
        count = len(actions)
    except TypeError:
        raise ValueError(f"step takes {n_envs} actions, one for each environment, not {actions!r}") from None
    if count != n_envs:
        raise ValueError(f"step takes {n_envs} actions, one for each environment, and got {count}")
    if not isinstance(actions, np.ndarray) or not isinstance(space, _ARRAYS):
        return
    if actions.shape[1:] != space.shape:
        raise ValueError(f"an action of {space} has the shape {space.shape}, not {actions.shape[1:]}")
    if actions.dtype.kind not in ("biu" if isinstance(space, _WHOLE) else "biuf"):
        raise ValueError(f"actions of {space} are {'whole ' if isinstance(space, _WHOLE) else ''}numbers, not {actions.dtype}")
