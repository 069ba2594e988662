"""From the arguments of a RayVecEnv to running actors."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.placement import SPREAD, STRICT_PACK, check_placement
from lit_sb3_ray.scale.resources import Request, Supply, cpu_supply, free_cores, grant
from lit_sb3_ray.vec.failures import EnvError
from lit_sb3_ray.vec.fleet import Fleet
from lit_sb3_ray.vec.grouping import EnvsPerActor, Grouping, group
from lit_sb3_ray.vec.launch import Launcher
from lit_sb3_ray.vec.patience import LONGEST_S
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
    grouping: Grouping | None = None,
    placement: str | None = None,
) -> Fleet:
    """Splits the environments, counts what their actors need, and starts them; see `RayVecEnv` for arguments and errors."""
    _check(env_fns, num_cpus_per_actor, step_timeout, max_restarts)
    if transport not in list(Transport):
        raise unknown("transport", transport, list(Transport))
    check_placement(placement)
    if grouping is None:
        grouping = plan_grouping(len(env_fns), envs_per_actor, step_timeout, placement)
    elif grouping.n_envs != len(env_fns):
        raise ConfigError(f"the grouping is of {grouping.n_envs} environments, and there are {len(env_fns)}")
    launcher = _launcher(env_fns, grouping, num_cpus_per_actor, step_timeout, transport, placement)
    try:
        return Fleet(env_fns, grouping, launcher, max_restarts)
    except EnvError as error:
        if isinstance(error.__cause__, ConfigError):
            # Bad input that only an environment's constructor notices is told as it is where no actor comes between.
            raise ConfigError(str(error.__cause__)) from error
        raise


def plan_grouping(
    n_envs: int, envs_per_actor: EnvsPerActor, step_timeout: float | None, placement: str | None = None
) -> Grouping:
    """Splits environments by the CPUs that Ray has free; connects to Ray unless one environment stays in this process.

    Args:
        n_envs: How many environments.
        envs_per_actor: See `RayVecEnv`.
        step_timeout: See `RayVecEnv`; what hangs in this process cannot be replaced.
        placement: See `RayVecEnv`.

    Raises:
        ConfigError: `envs_per_actor` is wrong.
    """
    inline = step_timeout is None
    if envs_per_actor == "auto" and inline and n_envs == 1:
        # One environment gains nothing from another process, so Ray is not needed.
        return Grouping(range(1), ())
    connect()
    supply = cpu_supply(here=placement == STRICT_PACK)
    return group(n_envs, envs_per_actor, _cores(supply, spread=placement == SPREAD), inline=inline)


def _launcher(
    env_fns: Sequence[EnvFn],
    grouping: Grouping,
    num_cpus_per_actor: float | None,
    step_timeout: float | None,
    transport: str,
    placement: str | None,
) -> Launcher | None:
    if not grouping.actors:
        return None
    connect()
    actors = len(grouping.actors)
    remedy = "raise envs_per_actor, or lower num_cpus_per_actor or the number of environments"
    supply = cpu_supply(here=placement == STRICT_PACK)
    [cpus] = grant([Request("env actors", actors, num_cpus_per_actor)], supply, remedy)
    logger.info(
        "%d environments: %d actors with %g CPUs each, %d environments in this process",
        *(len(env_fns), actors, cpus, len(grouping.inline)),
    )
    return Launcher(env_fns, cpus, Transport(transport), step_timeout, placement)


def _cores(supply: Supply, *, spread: bool) -> int:
    """Counts the processors for shares: this node's, or the whole cluster's where this one has no two of them.

    An actor of another node costs a call a step, which cheap environments are not worth, unless that is what is wanted.
    """
    cores = free_cores(supply)
    return cores.here if cores.here > 1 and not spread else cores.here + cores.elsewhere


def _check(env_fns: Sequence[EnvFn], num_cpus_per_actor: float | None, step_timeout: float | None, max_restarts: int) -> None:
    if not isinstance(env_fns, Sequence) or not all(map(callable, env_fns)):
        raise ConfigError(f"env_fns must be a list of functions that build an environment each, got {env_fns!r}")
    if not env_fns:
        raise ConfigError("there must be at least one environment")
    for name, value in (("num_cpus_per_actor", num_cpus_per_actor), ("step_timeout", step_timeout)):
        if not isinstance(value, int | float | None):
            raise ConfigError(f"{name} must be a number or None, got {value!r}")
    if num_cpus_per_actor is not None and not 1e-4 <= num_cpus_per_actor < math.inf:
        raise ConfigError(f"num_cpus_per_actor must be positive, 0.0001 at least, got {num_cpus_per_actor!r}")
    if step_timeout is not None and not 0 < step_timeout <= LONGEST_S:
        raise ConfigError(f"step_timeout must be a positive number of seconds, got {step_timeout!r}")
    if type(max_restarts) is not int or max_restarts < 0:
        raise ConfigError(f"max_restarts must be a whole number, 0 or more, got {max_restarts!r}")
