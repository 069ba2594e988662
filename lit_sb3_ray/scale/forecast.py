"""What Ray will have once it is started here. Starting it takes seconds, and what can never be met is refused before.

Ray has no public answer, so what is private to it is here alone.
"""

from __future__ import annotations

import ray
from ray._private.resource_and_label_spec import ResourceAndLabelSpec

from lit_sb3_ray.scale.connection import find_cluster
from lit_sb3_ray.scale.ray_settings import RaySettings


def coming_nodes(settings: RaySettings | None = None) -> list[dict[str, float]] | None:
    """Finds what the node of a Ray that `connect` would start has: CPUs, GPUs and so on, counted as Ray counts them.

    Args:
        settings: As `connect` takes them; None for the default ones.

    Returns:
        That one node; None where there is a Ray already that `connect` would take.
    """
    settings = settings or RaySettings()
    if ray.is_initialized() or find_cluster(settings) is not None:
        return None
    spec = ResourceAndLabelSpec(num_cpus=settings.num_cpus, num_gpus=settings.num_gpus)
    found: dict[str, float] = spec.resolve(is_head=True).to_resource_dict()  # type: ignore[no-untyped-call]
    return [found]
