"""From the arguments of a RayVecEnv to running actors."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.scale.connection import connect, usable_cpus
from lit_sb3_ray.scale.resources import Supply, check_request, cpu_supply
from lit_sb3_ray.vec.fleet import Fleet
from lit_sb3_ray.vec.grouping import EnvsPerActor, Grouping, group
from lit_sb3_ray.vec.launch import Launcher
from lit_sb3_ray.vec.peer import Transport
from lit_sb3_ray.vec.sending import EnvFn

logger = logging.getLogger(__name__)


def start_fleet(
    env_fns: Sequence[EnvFn],
    envs_per_actor: EnvsPerActor,
    num_cpus_per_actor: float | None,
    step_timeout: float | None,
    max_restarts: int,
    transport: str,
) -> Fleet:
    """Splits the environments, counts what their actors need, and starts them; see `RayVecEnv` for arguments and errors."""
    _check(env_fns, num_cpus_per_actor, step_timeout, max_restarts)
    if transport not in list(Transport):
        raise unknown("transport", transport, list(Transport))
    if envs_per_actor == "auto" and step_timeout is None and len(env_fns) == 1:
        # One environment gains nothing from another process, so Ray is not needed.
        return Fleet(env_fns, Grouping(range(1), ()), None, max_restarts)
    connect()
    supply = cpu_supply()
    # What hangs in this process cannot be replaced.
    grouping = group(len(env_fns), envs_per_actor, _cores(supply), inline=step_timeout is None)
    if not grouping.actors:
        return Fleet(env_fns, grouping, None, max_restarts)
    actors = len(grouping.actors)
    cpus = supply.fair_share(actors) if num_cpus_per_actor is None else num_cpus_per_actor
    check_request(actors, cpus, supply, "raise envs_per_actor, or lower num_cpus_per_actor or the number of environments")
    logger.info(
        "%d environments: %d actors with %g CPUs each, %d environments in this process",
        *(len(env_fns), actors, cpus, len(grouping.inline)),
    )
    return Fleet(env_fns, grouping, Launcher(env_fns, cpus, Transport(transport), step_timeout), max_restarts)


def _cores(supply: Supply) -> int:
    """Counts the processors for environments: those that Ray has free, and this process's own.

    A process in a placement group has its own reserved there. Any other shares those of this node, which Ray may count as more
    than there are.
    """
    free = sum(int(part + 1e-6) for part in supply.free)
    if supply.group is not None:
        return free + 1
    return free if len(supply.free) > 1 else min(free, usable_cpus())


def _check(env_fns: Sequence[EnvFn], num_cpus_per_actor: float | None, step_timeout: float | None, max_restarts: int) -> None:
    if not env_fns:
        raise ConfigError("there must be at least one environment")
    if num_cpus_per_actor is not None and num_cpus_per_actor <= 0:
        raise ConfigError(f"num_cpus_per_actor must be positive, got {num_cpus_per_actor!r}")
    if step_timeout is not None and step_timeout <= 0:
        raise ConfigError(f"step_timeout must be a positive number of seconds, got {step_timeout!r}")
    if max_restarts < 0:
        raise ConfigError(f"max_restarts must not be negative, got {max_restarts!r}")
