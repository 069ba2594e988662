"""Numbers for dashboards: the same names on both sides, and nothing of Ray where there is none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from lit_sb3_ray.scale import telemetry
from lit_sb3_ray.scale.metrics import ENV_STEPS, METRICS, ROLLOUT, UPDATE
from lit_sb3_ray.scale.telemetry import Telemetry, observed

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "cluster" / "grafana-dashboard.json").read_text())
WITHOUT_RAY = """
import sys
from lit_sb3_ray.scale.metrics import METRICS, tell
from lit_sb3_ray.scale.telemetry import observed
def profile(action): pass
assert observed(profile, int) is profile
for metric in METRICS:
    tell(metric, 1.0, **dict.fromkeys(metric.labels, "x"))
assert "ray" not in sys.modules
"""


def test_the_dashboard_shows_what_is_exported_and_nothing_else():
    shown = set(re.findall(r"\bray_lit_sb3_ray_\w+", json.dumps(DASHBOARD)))
    assert shown == {f"ray_{metric.name}{'_total' if metric.kind == 'counter' else ''}" for metric in METRICS}


def test_the_dashboard_asks_for_labels_that_there_are():
    names = {f"ray_{metric.name}": metric.labels for metric in METRICS}
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            name, labels = re.search(r"(ray_lit_sb3_ray_\w+?)(?:_total)?\{(.*?)\}", target["expr"]).groups()
            asked = {*re.findall(r"(\w+)=~", labels), *re.search(r"by \((.*?)\)", target["expr"])[1].split(", ")}
            assert asked - {"SessionName"} <= set(names[name])
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_nothing_is_told_and_ray_is_not_loaded_where_there_is_none():
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", WITHOUT_RAY], env=environment, check=True, timeout=100)


@pytest.mark.usefixtures("ray_instance")
def test_a_training_tells_its_speed_and_the_means_of_its_parts(monkeypatch):
    told, clock, steps = {}, [0.0], [0]
    monkeypatch.setattr(telemetry, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(telemetry, "tell", lambda metric, value: told.setdefault(metric, value))
    watched = Telemetry(lambda action: nullcontext(), lambda: steps[0])
    for seconds, update_s in ((0.25, 0.125), (0.5, 0.25)):
        with watched.profile("collect_rollouts"):
            clock[0] += seconds
            steps[0] += 90
        with watched.profile("train"):
            clock[0] += update_s
    assert told == {ENV_STEPS: 160.0, ROLLOUT: 0.375, UPDATE: 0.1875}


@pytest.mark.usefixtures("ray_instance")
def test_where_there_is_ray_a_training_is_observed():
    def profile(action):
        return nullcontext()

    assert observed(profile, int) is not profile
    with observed(profile, int)("collect_rollouts"):
        pass
