"""Whether all nodes see the same folder."""

from __future__ import annotations

import contextlib
import logging
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.nodes import node_names
from lit_sb3_ray.scale.remote_folder import is_url, one_line, open_url, url_of

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

# Seconds for a node to answer; one that is busy starts a process first.
PATIENCE_S = 60.0


def check_shared(path: str, flag: str) -> None:
    """Checks that what this process writes into a folder can be read on every node of Ray.

    Args:
        path: The folder, or a URL such as `s3://bucket/folder`, which this process at least must be able to write to.
        flag: What the user can give another one with, for the message.

    Raises:
        ConfigError: A node does not see the folder, or it cannot be written.
    """
    blind = blind_nodes(path, flag)
    if blind:
        raise ConfigError(
            f"{path} is not the same folder on {', '.join(blind)}: with several nodes, give {flag} a folder or URL they share"
        )


def blind_nodes(path: str, flag: str) -> list[str]:
    """Names the nodes that do not see what this process writes into a folder.

    Args:
        path: The folder, or its URL.
        flag: What has named it, for the message.

    Raises:
        ConfigError: It cannot be written.
    """
    own = ray.get_runtime_context().get_node_id()
    others = {node: name for node, name in node_names().items() if node != own}
    if not others and not is_url(path):
        return []
    with _marked(path, flag) as marker:
        calls = {node: _call(node, marker) for node in others}
        return [others[node] for node, call in calls.items() if not _answer(call, others[node])]


@contextlib.contextmanager
def _marked(path: str, flag: str) -> Iterator[str]:
    """Writes a file into a folder for a while; gives its path or URL."""
    name = f".shared_{secrets.token_hex(8)}"
    if not is_url(path):
        marker = Path(path).absolute() / name
        try:
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
        except OSError as error:
            raise ConfigError(f"{flag} {path!r} cannot be written: {error.strerror or error}") from error
        try:
            yield str(marker)
        finally:
            marker.unlink(missing_ok=True)
        return
    system, root = open_url(path, flag)
    try:
        system.create_dir(root, recursive=True)
        with system.open_output_stream(f"{root}/{name}") as file:
            file.write(b"shared")
    except OSError as error:
        raise ConfigError(f"{flag} {path!r} cannot be written: {one_line(error)}") from error
    try:
        yield url_of(f"{root}/{name}", root, path)
    finally:
        with contextlib.suppress(OSError):
            system.delete_file(f"{root}/{name}")


def _call(node: str, marker: str) -> Any:
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    return _sees.options(num_cpus=0, scheduling_strategy=there).remote(marker)


@ray.remote
def _sees(path: str) -> bool:
    if not is_url(path):
        return Path(path).exists()
    from pyarrow.fs import FileSystem, FileType  # type: ignore[import-untyped]

    system, inside = FileSystem.from_uri(path)
    return bool(system.get_file_info(inside).type != FileType.NotFound)


def _answer(call: ray.ObjectRef[bool], node: str) -> bool:
    try:
        return ray.get(call, timeout=PATIENCE_S)
    except OSError as error:
        # The file system itself refuses that node, for want of credentials for instance.
        logger.warning("node %s cannot look: %s", node, one_line(error))
        return False
    except (GetTimeoutError, RayError) as error:
        # Such a node gets no trial either before it answers; whether it sees the folder shows then.
        logger.warning("node %s does not say whether it sees the folder: %s", node, error)
        return True
