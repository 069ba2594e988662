"""Getting hold of Ray: the cluster that is there, or an instance of our own."""

from __future__ import annotations

import logging
import os
import socket
import time
from dataclasses import dataclass
from typing import Any

import ray
from ray._private.services import find_bootstrap_address, find_node_ids, get_ray_address_from_environment
from ray.exceptions import AuthenticationError, RuntimeEnvSetupError

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.nodes import node_resources
from lit_sb3_ray.scale.ray_settings import AUTO, LOCAL, RaySettings, check_address

logger = logging.getLogger(__name__)

# Seconds in which the head of a cluster must answer; one that is only being started gets them, too.
PATIENCE_S = 5.0
_AGAIN_S = 0.2
# How a client of gRPC greets a server: the preface of HTTP/2 and an empty frame of settings. It is answered by such a frame.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS_FRAME = 4
_CHECK_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_ON_A_NODE = "run the command on one of its nodes, send it there by `ray submit` or `ray job submit`, or join by `ray start`"
_TOKEN = "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
_OFF = ("", "0", "false", "False")  # how a switch of Ray's is off

_DEFAULT = RaySettings()


@dataclass(frozen=True)
class Cluster:
    """A cluster that somebody or something has named.

    Attributes:
        address: `host:port` of its head.
        told: What names it, for messages.
        remedy: What can be done when it does not answer.
        is_found: Whether Ray itself has found it on this machine.
    """

    address: str
    told: str
    remedy: str = f"give another, or start a Ray of its own by --ray-address {LOCAL}"
    is_found: bool = False


class _NoNodeHereError(Exception):
    """A cluster has no node on this machine."""


class _Connection:
    """What this process has connected with last."""

    settings = _DEFAULT


def connect(settings: RaySettings = _DEFAULT) -> None:
    """Makes sure that this process is connected to Ray.

    An existing connection stays. Otherwise it joins the cluster that the settings, `RAY_ADDRESS` (a job has it) or a note
    of Ray's on this machine name; or it starts an instance for this process alone, which ends with it.

    Args:
        settings: Which Ray, and what is shipped to its nodes. Once connected, only the same settings or none may be given.

    Raises:
        ConfigError: The cluster does not answer or refuses this process, or the settings do not suit it.
    """
    if ray.is_initialized():
        if settings not in (_DEFAULT, _Connection.settings):
            raise ConfigError("this process is connected to Ray already, with other settings: shut that down first")
        return
    # The workers of an instance that is started here stand back behind nobody: a learner waits for what they do.
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = find_cluster(settings)
    if cluster is None:
        _start(settings)
    else:
        _join(cluster, settings)
    _Connection.settings = settings
    nodes = node_resources()
    cpus, gpus = (sum(node.get(name, 0.0) for node in nodes) for name in ("CPU", "GPU"))
    logger.info("connected to Ray with %d nodes, %g CPUs and %g GPUs", len(nodes), cpus, gpus)


def find_cluster(settings: RaySettings = _DEFAULT) -> Cluster | None:
    """Finds the cluster that `connect` would join; whether it answers is not looked at.

    Args:
        settings: As `connect` takes them.

    Returns:
        The cluster; None for a Ray of this process's own.

    Raises:
        ConfigError: There is none where one was asked for, or `RAY_ADDRESS` is no address of a cluster.
    """
    given, variable = settings.address, os.environ.get("RAY_ADDRESS", "")
    if given == LOCAL or (not given and variable == LOCAL):
        return None
    if given not in ("", AUTO):
        return Cluster(given, f"the cluster of --ray-address {given}")
    if variable not in ("", AUTO, LOCAL):
        check_address(variable, "RAY_ADDRESS")
        return Cluster(variable, f"the cluster of RAY_ADDRESS {variable}")
    found = _running() if AUTO in (given, variable) else find_bootstrap_address(None)
    if not found:
        return None
    remedy = f"if it is gone, `ray stop` forgets it; --ray-address {LOCAL} starts another Ray"
    return Cluster(found, f"the cluster last started on this machine, {found},", remedy, is_found=True)


def _running() -> str:
    """Finds a cluster that runs on this machine, be it one that only another process has for itself."""
    try:
        found: str = get_ray_address_from_environment(AUTO, None)
    except ConnectionError as error:
        raise ConfigError("--ray-address auto: no cluster runs on this machine, and RAY_ADDRESS names none") from error
    return found


def _start(settings: RaySettings) -> None:
    try:
        ray.init(address=LOCAL, **{"include_dashboard": False, **settings.own, **_shipped(settings)})
    except (ValueError, RuntimeEnvSetupError) as error:
        raise ConfigError(f"Ray cannot be started: {' '.join(str(error).split())}") from error


def _join(cluster: Cluster, settings: RaySettings) -> None:
    settings.check_running(cluster.told)
    _await_answer(cluster)
    try:
        # Where Ray has found the cluster itself, it finds its token, too.
        ray.init(address=settings.address or None if cluster.is_found else cluster.address, **_shipped(settings))
    except AuthenticationError as error:
        raise ConfigError(f"{cluster.told} wants its token: {_TOKEN}") from error
    except ConnectionError as error:
        # It does answer; Ray's own attempts say no more than this where the token is wrong or missing.
        reason = " ".join(str(error).split())
        raise ConfigError(f"{cluster.told} cannot be joined ({reason}); for its token, {_TOKEN}") from error
    except (RuntimeError, ValueError, RuntimeEnvSetupError) as error:
        raise ConfigError(f"{cluster.told} cannot be joined: {' '.join(str(error).split())}") from error


def _shipped(settings: RaySettings) -> dict[str, Any]:
    shipped = settings.runtime_env()
    return {"runtime_env": shipped} if shipped else {}


def _await_answer(cluster: Cluster) -> None:
    """Waits until the head of a cluster answers; Ray itself would wait for minutes for one that is gone."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            _greet(cluster.address, max(_AGAIN_S, deadline - time.monotonic()))
            _look_at(cluster.address, max(_AGAIN_S, deadline - time.monotonic()))
        except _NoNodeHereError as error:
            if time.monotonic() + _AGAIN_S > deadline:
                raise ConfigError(f"{cluster.told} {error}: {_ON_A_NODE}") from error
        except OSError as error:
            if time.monotonic() + _AGAIN_S > deadline or isinstance(error, socket.gaierror):
                raise ConfigError(f"{cluster.told} does not answer ({_reason(error)}): {cluster.remedy}") from error
        else:
            return
        time.sleep(_AGAIN_S)


def _greet(address: str, seconds: float) -> None:
    """Asks whether there is a server of gRPC; where Ray uses TLS, whether there is any.

    Raises:
        OSError: There is none, or it does not say anything.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as connection:
        if os.environ.get("RAY_USE_TLS", "0") not in _OFF:
            return
        connection.settimeout(seconds)
        connection.sendall(_GREETING)
        answer = connection.recv(9)
        if len(answer) < 4 or answer[3] != _SETTINGS_FRAME:
            raise ConnectionError("what listens there is no Ray")


def _look_at(address: str, seconds: float) -> None:
    """Asks whether a server of gRPC is the head of a cluster that has a node on this machine, as Ray needs of a driver.

    Ray itself would ask for half a minute or more, and complain in many lines. With TLS or a token, that is left to it.

    Raises:
        OSError: It is no head, or does not say anything.
        _NoNodeHereError: The cluster has no node here.
    """
    import grpc  # type: ignore[import-untyped]
    from ray.core.generated.gcs_service_pb2 import CheckAliveReply, CheckAliveRequest  # type: ignore[attr-defined]

    if os.environ.get("RAY_USE_TLS", "0") not in _OFF:
        return
    nodes = [ray.NodeID.from_hex(node).binary() for node in find_node_ids()]  # type: ignore[no-untyped-call]
    with grpc.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        ask = channel.unary_unary(_CHECK_ALIVE, CheckAliveRequest.SerializeToString, CheckAliveReply.FromString)
        try:
            answer = ask(CheckAliveRequest(node_ids=nodes), timeout=seconds)
        except grpc.RpcError as error:
            code = error.code()
            if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
                return
            if code is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise TimeoutError from error
            what = "is no head of a Ray cluster" if code is grpc.StatusCode.UNIMPLEMENTED else f"breaks off, {code.name}"
            raise ConnectionError(f"what listens there {what}") from error
    if not any(answer.raylet_alive):
        raise _NoNodeHereError("has no node on this machine")


def _reason(error: OSError) -> str:
    return "it says nothing" if isinstance(error, TimeoutError) else error.strerror or str(error)
