"""A real cluster of two nodes: what is shipped to them, the folder they must share, and where trials and env actors go."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_cluster import run_with_cluster

from lit_sb3_ray.scale.metrics import METRICS

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

SCRIPT = Path(__file__).with_name("nodes_process.py")


def test_a_study_on_two_nodes_ships_its_modules_and_needs_a_folder_that_both_see(tmp_path):
    found = run_with_cluster(SCRIPT, tmp_path, "shipping")
    assert found["own"].startswith("--ray-num-cpus: the cluster of RAY_ADDRESS ")
    assert "--ray-address local" in found["own"]
    assert found["shipped"] == [["Env", "yes"]] * 2
    assert "is not the same folder on" in found["unshared"]
    assert "give --storage-path a folder or URL they share" in found["unshared"]
    assert not [path for path in found["left"] if "study" in path]
    assert found["failures"] == [None, None]
    assert found["states"] == ["COMPLETE"] * 2
    assert found["folders"] == [True, True]
    # What trials print is in the folder only where all of them can write to it.
    assert "study.yml" in found["there"]
    assert "output" not in found["there"]
    assert found["copied"] == found["there"]


def test_env_actors_go_where_they_are_wanted_and_trials_get_what_they_reserve(tmp_path):
    found = run_with_cluster(SCRIPT, tmp_path, "placement")
    assert found["nodes"] == {
        "None": [True, True],
        "strict-pack": [True, True],
        "pack": [True, True],
        "spread": [True, False],
    }
    assert found["crowded"] == ["COMPLETE"] * 2
    assert found["told"] == 3
    assert found["gpus"] == {"0.0": [False, False], "0.5": [True, True]}
    counters = {metric.name: "_total" if metric.kind == "counter" else "" for metric in METRICS}
    assert {f"ray_{name}{ending}" for name, ending in counters.items()} <= set(found["exported"])
