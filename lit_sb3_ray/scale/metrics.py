"""Numbers for Ray's dashboard, Prometheus and Grafana, told where this process is connected to Ray and nowhere else."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ray.util.metrics import Counter, Gauge


@dataclass(frozen=True)
class Metric:
    """A number that is told.

    Attributes:
        name: Its name; Ray exports it as `ray_<name>`, a counter as `ray_<name>_total`.
        kind: `gauge` is what is now, `counter` adds up.
        meaning: What it is, with its unit.
        labels: What tells its series apart, beside what Ray knows itself: node, process, job.
    """

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    labels: tuple[str, ...]


ENV_STEPS = Metric("lit_sb3_ray_env_steps_per_second", "gauge", "Env steps per second of a training.", ("run",))
ROLLOUT = Metric("lit_sb3_ray_rollout_seconds", "gauge", "Seconds of a rollout.", ("run",))
UPDATE = Metric("lit_sb3_ray_update_seconds", "gauge", "Seconds of the update after a rollout.", ("run",))
RESTARTS = Metric("lit_sb3_ray_env_restarts", "counter", "Env actors that were lost and started anew.", ("run",))
TRIALS = Metric("lit_sb3_ray_trials", "gauge", "Trials of a study by state.", ("study", "state"))
METRICS = (ENV_STEPS, ROLLOUT, UPDATE, RESTARTS, TRIALS)


class Run:
    """What this process trains, as its numbers name it: a run, or a study for any of its trials, so that series stay few."""

    name = ""


def is_connected() -> bool:
    """Whether this process is connected to Ray; Ray is not imported to find out."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def tell(metric: Metric, value: float, **labels: str) -> None:
    """Sets a gauge, or adds to a counter, if this process is connected to Ray.

    Args:
        metric: One of `METRICS`.
        value: The number; a counter takes what is above zero.
        **labels: One for each of the metric's; `run` is this process's own unless it is given.
    """
    if not is_connected():
        return
    named = {"run": Run.name, **labels} if "run" in metric.labels else labels
    # Ray takes no other letters.
    tags = {label: text.encode("ascii", "backslashreplace").decode() for label, text in named.items()}
    made = _made(metric)
    if metric.kind == "gauge":
        made.set(value, tags)  # type: ignore[union-attr]
    elif value > 0:
        made.inc(value, tags)  # type: ignore[union-attr]


@cache
def _made(metric: Metric) -> Gauge | Counter:
    from ray.util.metrics import Counter, Gauge

    kind = Gauge if metric.kind == "gauge" else Counter
    return kind(metric.name, metric.meaning, metric.labels)
