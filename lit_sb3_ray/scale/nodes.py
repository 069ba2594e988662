"""The nodes of the Ray that this process is connected to."""

from __future__ import annotations

import ray


def node_resources() -> list[dict[str, float]]:
    """Lists what each living node has, used or not: CPUs, GPUs and so on."""
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return [dict(node["Resources"]) for node in nodes if node["Alive"]]


def node_names() -> dict[str, str]:
    """Names each living node, by Ray's id of it: the host, and its address where that is another word."""
    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    return {node["NodeID"]: _name(node["NodeManagerHostname"], node["NodeManagerAddress"]) for node in nodes}


def _name(host: str, address: str) -> str:
    return host if host == address else f"{host} ({address})"
