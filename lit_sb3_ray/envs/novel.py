"""The `NoVel` environments: classic tasks whose velocities are hidden from the agent."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from lit_sb3_ray.envs.wrappers.mask_velocity import VELOCITY_INDICES, MaskVelocityWrapper


def _novel_id(base_id: str) -> str:
    name, version = base_id.rsplit("-v", 1)
    return f"{name}NoVel-v{version}"


NOVEL_IDS: dict[str, str] = {_novel_id(base_id): base_id for base_id in VELOCITY_INDICES}
"""Id of each environment without velocities, and the id of the one it is made from."""


def make_novel(base_id: str, **kwargs: Any) -> gym.Env:
    """Builds an environment and masks its velocities; the entry point of all `NoVel` ids.

    Args:
        base_id: Id of the environment with velocities, e.g. `"CartPole-v1"`.
        **kwargs: Constructor arguments of that environment.

    Returns:
        The masked environment.
    """
    return MaskVelocityWrapper(gym.make(base_id, **kwargs))


def register_novel_envs() -> None:
    """Adds the `NoVel` ids to gymnasium's registry; those already there are left alone."""
    for novel_id, base_id in NOVEL_IDS.items():
        if novel_id not in gym.registry:
            gym.register(id=novel_id, entry_point=f"{__name__}:make_novel", kwargs={"base_id": base_id})
