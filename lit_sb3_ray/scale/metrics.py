"""Numbers for Ray's dashboard and Prometheus."""

from __future__ import annotations

from functools import cache

from ray.util.metrics import Gauge


@cache
def env_steps_per_second() -> Gauge:
    """Env steps per second, by `trial`."""
    return Gauge("lit_sb3_ray_env_steps_per_second", "Env steps per second of a trial.", ("trial",))


@cache
def trials_by_state() -> Gauge:
    """Trials of a study, by `state`."""
    return Gauge("lit_sb3_ray_trials", "Trials of a study by state.", ("study", "state"))
