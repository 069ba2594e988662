"""Where a batch of environments steps fastest: in this process, or in how many actors. It is worked out, not tried.

One environment is built and stepped for a moment. What comes on top of its steps is known from measurements on a machine with
two processors of 2.5 GHz; it differs by less from machine to machine than environments differ from each other:

- `DummyVecEnv` adds some microseconds to each environment's step, actors about the same.
- Actors that have a processor each are polled, and polling them. A step then costs one exchange, and a little for each actor.
- Actors that outnumber the processors sleep between steps. Each wake-up costs more than many an environment's step.
- An actor on another node is called, which takes a millisecond of the learner's own time for each of them.
- Ray takes seconds to start, and each actor a second and a half of a processor.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from lit_sb3_ray.scale.processors import Cores
from lit_sb3_ray.vec.grouping import EnvsPerActor, Grouping, group

RAY_START_S = 4.0
ACTOR_START_S = 1.5

_ENV_S = 4e-6
_EXCHANGE_S = 50e-6
_POLLED_S = 10e-6
_WOKEN_S = 60e-6
_CALLED_S = 1.2e-3
_MOMENT_S = 0.05


@dataclass(frozen=True)
class Prospect:
    """What is known before anything is chosen.

    Attributes:
        n_envs: How many environments.
        steps: Env steps to come, of all environments together.
        cores: Processors for them.
        envs_per_actor: The most that one actor may have; `"auto"` leaves that to the choice.
        inline: Whether a share may stay in this process.
        start_s: Seconds until actors can be started, which those of Ray are.
    """

    n_envs: int
    steps: int
    cores: Cores
    envs_per_actor: EnvsPerActor
    inline: bool
    start_s: float


@dataclass(frozen=True)
class Choice:
    """Where the environments step.

    Attributes:
        grouping: Their shares; None for all of them in this process.
        reason: What was measured and expected, in words.
    """

    grouping: Grouping | None
    reason: str


def choose(step_s: float, prospect: Prospect) -> Choice:
    """Chooses the place where the env steps to come are over first.

    Args:
        step_s: Seconds that one environment takes for a step.
        prospect: What is to come.

    Returns:
        The choice. What it is changes no result, only the time.
    """
    n_envs, steps = prospect.n_envs, prospect.steps
    here = n_envs * (step_s + _ENV_S)
    groupings = _groupings(prospect)
    if not groupings:
        return Choice(None, f"{n_envs} environments stay in this process, which has no processor beside its own")
    best = min(groupings, key=lambda grouping: _total(step_s, grouping, prospect))
    there, actors = batch_seconds(step_s, best, prospect.cores), len(best.actors)
    start = prospect.start_s + _starting(best, prospect.cores)
    is_worth = _total(step_s, best, prospect) < here * steps / n_envs
    beside = f" and {len(best.inline)} environments beside them" if best.inline else ""
    reason = (
        f"an environment's step takes {_duration(step_s)}; {n_envs} of them take {_duration(here)} in this process and about "
        f"{_duration(there)} with {actors} {'actor' if actors == 1 else 'actors'}{beside}, {_duration(start)} to start: "
        f"for {steps:,} env steps {'actors are' if is_worth else 'this process is'} faster"
    )
    return Choice(best if is_worth else None, reason)


def batch_seconds(step_s: float, grouping: Grouping, cores: Cores) -> float:
    """Estimates how long actors take to step all environments once.

    Args:
        step_s: Seconds of one environment's step.
        grouping: Their shares, at least one of them an actor's.
        cores: Processors for them; those of this node are taken first.
    """
    shares = [share for share in (grouping.inline, *grouping.actors) if share]
    away = min(max(0, len(shares) - cores.here), cores.elsewhere)
    near = len(shares) - away
    longest, each = max(map(len, shares)), step_s + _ENV_S
    if near <= cores.here:
        work, exchange = longest * each, _EXCHANGE_S + near * _POLLED_S
    else:
        # The processors take turns; what is left over in the last turn keeps some of them idle.
        work = max(longest * each, sum(map(len, shares[:near])) * each / max(cores.here, 1))
        exchange = near * _WOKEN_S
    return work + exchange + away * _CALLED_S


def measure(build: Callable[[], gym.Env[Any, Any]]) -> float:
    """Times an environment for about a twentieth of a second, or for one step where that takes longer.

    It plays at random, from a fixed seed; Python's, numpy's and torch's own generators are as before afterwards.

    Args:
        build: Builds the environment, which is closed again.

    Returns:
        Seconds of a step, with the resets that fell due.

    Raises:
        Exception: Whatever the environment raises.
    """
    with _generators_kept():
        env = build()
        try:
            return _seconds_per_step(env)
        finally:
            env.close()


def _seconds_per_step(env: gym.Env[Any, Any]) -> float:
    env.reset(seed=0)
    # The first step may load or compile what later ones find ready.
    _step(env)
    spent, steps = 0.0, 0
    while spent < _MOMENT_S:
        spent += _step(env)
        steps += 1
    return spent / steps


def _step(env: gym.Env[Any, Any]) -> float:
    action = _action(env)
    start = time.perf_counter()
    _, _, terminated, truncated, _ = env.step(action)
    if terminated or truncated:
        env.reset()
    return time.perf_counter() - start


def _action(env: gym.Env[Any, Any]) -> Any:
    """Draws an action, among those that are allowed where the environment tells which."""
    if isinstance(env.action_space, gym.spaces.Discrete) and env.has_wrapper_attr("action_masks"):
        return env.action_space.sample(mask=np.asarray(env.get_wrapper_attr("action_masks")(), np.int8))
    return env.action_space.sample()


@contextlib.contextmanager
def _generators_kept() -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _groupings(prospect: Prospect) -> list[Grouping]:
    """Lists the ways to split the environments that have an actor."""
    if prospect.envs_per_actor != "auto":
        return [group(prospect.n_envs, prospect.envs_per_actor, 0, inline=False)]
    most = min(prospect.n_envs, prospect.cores.here + prospect.cores.elsewhere)
    return [group(prospect.n_envs, "auto", shares, inline=prospect.inline) for shares in range(2, most + 1)]


def _starting(grouping: Grouping, cores: Cores) -> float:
    """Estimates how long the actors take to start."""
    at_once = max(1, cores.here + cores.elsewhere)
    return ACTOR_START_S * -(-len(grouping.actors) // at_once)


def _total(step_s: float, grouping: Grouping, prospect: Prospect) -> float:
    batches = prospect.steps / prospect.n_envs
    return prospect.start_s + _starting(grouping, prospect.cores) + batches * batch_seconds(step_s, grouping, prospect.cores)


def _duration(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
