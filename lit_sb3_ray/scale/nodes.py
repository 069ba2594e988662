"""The nodes of the Ray that this process is connected to."""

from __future__ import annotations

import ray


def node_resources() -> list[dict[str, float]]:
    """Lists what each living node has, used or not: CPUs, GPUs and so on."""
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return [dict(node["Resources"]) for node in nodes if node["Alive"]]
