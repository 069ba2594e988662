"""Starting env actors and connecting to them."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from lit_sb3_ray.scale.autoscaling import may_grow
from lit_sb3_ray.scale.nodes import node_names
from lit_sb3_ray.scale.placement import STRICT_PACK, choose_nodes
from lit_sb3_ray.scale.resources import Request, Supply, cpu_supply, numbers
from lit_sb3_ray.vec.actor import EnvActor, Home
from lit_sb3_ray.vec.failures import ActorError, EnvFailure, PeerLost
from lit_sb3_ray.vec.group import Description
from lit_sb3_ray.vec.memory import answer, listening, receive_object
from lit_sb3_ray.vec.peer import Transport
from lit_sb3_ray.vec.process import ActorProcess, cause_of_death
from lit_sb3_ray.vec.sending import EnvFn, pickle_builder

logger = logging.getLogger(__name__)

_PLACE_PATIENCE_S = 60.0  # for Ray to place and start the actors
_GROW_PATIENCE_S = 1200.0  # the same where nodes may have to be started first
_BUILD_PATIENCE_S = 300.0  # for the environments to be built
_NOTICE_S = 10.0


@dataclass(frozen=True)
class Launched:
    """An actor whose environments are built.

    Attributes:
        rows: Its environments.
        process: The actor.
        description: What they are.
        connection: The socket to it; None when it is reached by calls.
        serving: The call that serves the socket.
    """

    rows: range
    process: ActorProcess
    description: Description
    connection: socket.socket | None = None
    serving: Any = None


class Launcher:
    """Starts actors and waits until their environments are built.

    Args:
        env_fns: What builds each environment.
        cpus: CPUs of each actor.
        transport: How actors shall be reached.
        timeout: Seconds for the environments of an actor to be built; None for the default.
        placement: One of `scale.placement.STRATEGIES`, or None.

    Raises:
        ConfigError: One of `env_fns` cannot be sent to another process.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        cpus: float,
        transport: Transport,
        timeout: float | None,
        placement: str | None = None,
    ) -> None:
        self._placement = placement
        self._builders = [pickle_builder(env_fn, index) for index, env_fn in enumerate(env_fns)]
        self._cpus = cpus
        self._transport = transport
        self._patience = max(timeout or 0.0, _BUILD_PATIENCE_S)
        self._node = ray.get_runtime_context().get_node_id()

    def launch(self, shares: Sequence[range]) -> list[Launched]:
        """Starts one actor for each share, all at once.

        Args:
            shares: Environments of each.

        Returns:
            The actors, in that order.

        Raises:
            ActorError: Ray did not start them in time; the message has the numbers.
            PeerLost: One died while it built its environments.
            EnvError: An environment cannot be built.
        """
        actors: list[Any] = []
        started: list[ActorProcess] = []
        try:
            options = self._options(cpu_supply(), len(shares))
            niceness = os.getpriority(os.PRIO_PROCESS, 0)
            search_path = [os.path.abspath(folder) for folder in sys.path]
            actors.extend(ray.remote(EnvActor).options(**chosen).remote(search_path, niceness) for chosen in options)
            homes = self._locate(actors)
            started.extend(
                ActorProcess(actor, home, here=home.node == self._node) for actor, home in zip(actors, homes, strict=True)
            )
            return self._connect(list(shares), started)
        except BaseException:
            for process in started:
                process.kill()
            for actor in actors[len(started) :]:
                ray.kill(actor)
            raise

    def _options(self, supply: Supply, actors: int) -> list[dict[str, Any]]:
        strategies: list[Any] = [None] * actors
        if supply.group is not None:
            strategies = [PlacementGroupSchedulingStrategy(supply.group)] * actors
        elif self._transport is Transport.SHARED or self._placement == STRICT_PACK:
            strategies = [NodeAffinitySchedulingStrategy(self._node, soft=False)] * actors
        elif self._transport is Transport.AUTO:
            nodes = choose_nodes(supply, actors, self._cpus, self._node, self._placement)
            strategies = [NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True) for node in nodes]
        needs: dict[str, Any] = {"num_cpus": self._cpus, "num_gpus": 0, "max_restarts": 0, "max_task_retries": 0}
        return [needs if strategy is None else {**needs, "scheduling_strategy": strategy} for strategy in strategies]

    def _locate(self, actors: list[Any]) -> list[Home]:
        """Waits until Ray has started all actors."""
        calls = [actor.locate.remote() for actor in actors]
        _, waiting = ray.wait(calls, num_returns=len(calls), timeout=_NOTICE_S)
        asked = [Request("env actors", len(actors), self._cpus)]
        patience = _PLACE_PATIENCE_S
        if waiting:
            supply = cpu_supply()
            if supply.group is None and may_grow():
                patience = _GROW_PATIENCE_S
            logger.warning("%d of %d env actors are not started yet: %s", len(waiting), len(actors), numbers(asked, supply))
            _, waiting = ray.wait(calls, num_returns=len(calls), timeout=patience - _NOTICE_S)
        if waiting:
            raise ActorError(
                f"{len(waiting)} of {len(actors)} env actors were not started within {patience:g} s: "
                f"{numbers(asked, cpu_supply())}; ask for fewer actors (envs_per_actor) or CPUs "
                "(num_cpus_per_actor), or end what holds the others"
            )
        try:
            homes: list[Home] = ray.get(calls)
        except RayError as error:
            raise ActorError(f"an env actor cannot be started: {' '.join(str(error).split())}") from error
        return homes

    def _connect(self, shares: list[range], processes: list[ActorProcess]) -> list[Launched]:
        """Lets the actors build their environments; those of this node connect to a socket first."""
        shared = [process.here and self._transport is not Transport.CALLS for process in processes]
        if self._transport is Transport.SHARED and not all(shared):
            raise ActorError("an env actor is on another node, which transport='shared' cannot reach: use 'auto'")
        names = node_names()
        for rows, process, is_shared in zip(shares, processes, shared, strict=True):
            logger.info(
                "environments %d to %d: process %d on node %s, %s, reached by %s",
                *(rows.start, rows.stop - 1, process.home.pid, process.home.node[:12], names.get(process.home.node, "gone")),
                "shared memory" if is_shared else "actor calls",
            )
        deadline = time.monotonic() + self._patience
        password = secrets.token_bytes(16)
        with listening(len(shares)) as (listener, address):
            calls = [
                process.handle.serve.remote(address, password, rows.start, self._builders_of(rows))
                if is_shared
                else process.handle.build.remote(rows.start, self._builders_of(rows))
                for rows, process, is_shared in zip(shares, processes, shared, strict=True)
            ]
            serving = {rows.start: call for rows, call, is_shared in zip(shares, calls, shared, strict=True) if is_shared}
            connections = _accept(listener, password, serving, deadline)
        launched = []
        try:
            for rows, process, call, is_shared in zip(shares, processes, calls, shared, strict=True):
                if is_shared:
                    connection = connections[rows.start]
                    description = _hear(connection, call, rows, deadline)
                    launched.append(Launched(rows, process, description, connection, call))
                else:
                    launched.append(Launched(rows, process, _ask(call, rows, deadline)))
        except BaseException:
            for connection in connections.values():
                connection.close()
            raise
        return launched

    def _builders_of(self, rows: range) -> list[bytes]:
        return [self._builders[row] for row in rows]


def _accept(listener: socket.socket, password: bytes, serving: dict[int, Any], deadline: float) -> dict[int, socket.socket]:
    """Accepts the connections of all actors that serve; returns them by first environment."""
    connections: dict[int, socket.socket] = {}
    try:
        while len(connections) < len(serving):
            connection = answer(listener, password, 0.5)
            if connection is not None:
                try:
                    first, _ = receive_object(connection)
                except ConnectionError:  # It has died meanwhile: of what, its call will tell.
                    connection.close()
                else:
                    connections[first] = connection
                continue
            missing = {first: call for first, call in serving.items() if first not in connections}
            ended, _ = ray.wait(list(missing.values()), timeout=0)
            for first, call in missing.items():
                if call in ended:
                    raise PeerLost(f"its actor has died: {cause_of_death(call)}", first)
            if time.monotonic() > deadline:
                raise PeerLost("its actor does not connect", min(missing))
    except BaseException:
        for connection in connections.values():
            connection.close()
        raise
    return connections


def _hear(connection: socket.socket, call: Any, rows: range, deadline: float) -> Description:
    """Waits for what an actor says of the environments it has built."""
    connection.settimeout(max(0.1, deadline - time.monotonic()))
    try:
        description: Description | EnvFailure = receive_object(connection)[0]
    except TimeoutError:
        raise PeerLost("its construction does not end", rows.start) from None
    except ConnectionError:
        raise PeerLost(f"its actor has died in its construction: {cause_of_death(call)}", rows.start) from None
    connection.settimeout(None)
    return _built(description)


def _ask(call: Any, rows: range, deadline: float) -> Description:
    """Waits for the result of a call that builds environments."""
    try:
        description: Description | EnvFailure = ray.get(call, timeout=max(0.1, deadline - time.monotonic()))
    except GetTimeoutError:
        raise PeerLost("its construction does not end", rows.start) from None
    except RayError as error:
        raise PeerLost(f"its actor has died in its construction: {' '.join(str(error).split())}", rows.start) from None
    return _built(description)


def _built(description: Description | EnvFailure) -> Description:
    if isinstance(description, EnvFailure):
        raise description.error()
    return description
