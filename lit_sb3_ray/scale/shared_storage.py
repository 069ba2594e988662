"""Whether all nodes see the same folder."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)

# Seconds for a node to answer; one that is busy starts a process first.
PATIENCE_S = 60.0


def check_shared(path: str, flag: str) -> None:
    """Checks that what this process writes into a folder can be read on every node of Ray.

    Args:
        path: The folder, or a URL such as `s3://bucket/folder`, which is taken to be shared.
        flag: What the user can give another one with, for the message.

    Raises:
        ConfigError: A node does not see the folder.
    """
    own = ray.get_runtime_context().get_node_id()
    nodes = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
    if "://" in path or len(nodes) < 2:
        return
    marker = Path(path).absolute() / f".shared_{secrets.token_hex(8)}"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    try:
        calls = {
            name: _sees.options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(
                str(marker)
            )
            for node, name in nodes.items()
            if node != own
        }
        blind = [name for name, call in calls.items() if not _answer(call, name)]
    finally:
        marker.unlink(missing_ok=True)
    if blind:
        raise ConfigError(
            f"{path} is not the same folder on {', '.join(blind)}: with several nodes, give {flag} a folder or URL they share"
        )


@ray.remote
def _sees(path: str) -> bool:
    return Path(path).exists()


def _answer(call: ray.ObjectRef[bool], node: str) -> bool:
    try:
        return ray.get(call, timeout=PATIENCE_S)
    except (GetTimeoutError, RayError) as error:
        # Such a node gets no trial either before it answers; whether it sees the folder shows then.
        logger.warning("node %s does not say whether it sees the folder: %s", node, error)
        return True
