"""The simulation of large clusters: what it must give for costs that are easy to reckon with, and when it says nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def sim(monkeypatch):
    """The simulation as a module."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import cluster_sim

    yield cluster_sim
    for name in ("cluster_sim", "cluster_costs", "scale", "comparison"):
        sys.modules.pop(name, None)


@pytest.fixture
def costs(sim):
    """Costs of nothing, but for the processors and two results a trial."""
    from cluster_costs import Costs

    nothing = dict.fromkeys((field.name for field in fields(Costs)), 0.0)
    return Costs(**{**nothing, "cores": 2, "results": 2.0})


def test_jobs_share_processors_and_none_has_more_than_one(sim):
    ends = []
    machine = sim.Machine(1, 0.0)
    for work in (1.0, 2.0):
        machine.begin(work, lambda: ends.append(machine.now))
    machine.run()
    assert ends == pytest.approx([2.0, 3.0])
    machine = sim.Machine(8, 0.0)
    machine.begin(1.0, lambda: ends.append(machine.now))
    machine.run()
    assert ends[-1] == pytest.approx(1.0)
    machine = sim.Machine(1, 0.5)
    machine.begin(1.0, lambda: ends.append(machine.now))
    machine.run()
    assert ends[-1] == pytest.approx(2.0)


def test_one_driver_serves_one_result_after_another(sim, costs):
    seconds = sim.Reporting(replace(costs, driver_result_s=0.01), 1, 100).seconds()
    assert seconds == pytest.approx(100 * 2 * 0.01, rel=0.01)


def test_processes_that_share_two_processors_take_as_long_as_their_work(sim, costs):
    seconds = sim.Reporting(replace(costs, worker_trial_s=0.2), 1, 100).seconds()
    assert seconds == pytest.approx(100 * 2 * 0.1 / 2, rel=0.05)


def test_a_killed_node_s_trials_are_done_again(sim, costs):
    run = sim.Reporting(replace(costs, worker_trial_s=0.2), 4, 100)
    run.seconds()
    assert (run.lost, run.ended, run.live) == (4, 104, 0)


def test_a_slow_driver_is_what_a_large_study_waits_for(sim, costs):
    plan = sim.Plan(trials=2000, nodes=100, kept=1.0)
    quick = sim.simulate(replace(costs, driver_result_s=0.001), plan)
    slow = sim.simulate(replace(costs, driver_result_s=1.0), plan)
    assert quick.results == slow.results == 2000 * plan.reports
    assert quick.driver[0] < 0.01
    assert quick.waiting_s[0] < 0.1
    assert slow.hours * 3600 == pytest.approx(10_000, rel=0.1)
    assert slow.driver[0] > 0.9
    assert slow.waiting_s[0] > 60


def test_what_breaks_first_is_found(sim, costs):
    heavy = replace(costs, driver_result_s=0.05, driver_trial_mb=0.06)
    rows = {name: (used, size) for name, used, size in sim.limits(heavy, sim.Plan(trials=1000, nodes=100, trial_s=600.0))}
    assert rows["driver's thread, busiest tenth"][1] != "beyond 3,200"
    assert rows["control service, one processor"][1] == "beyond 3,200"


@pytest.mark.parametrize(("measured", "code"), [(20.0, 0), (200.0, 1)])
def test_it_says_nothing_of_large_clusters_unless_it_predicts_small_ones(
    sim, costs, measured, code, tmp_path, monkeypatch, capsys
):
    told = replace(costs, driver_result_s=0.01, env_actor_s=1.5)
    (tmp_path / "costs.json").write_text(json.dumps(asdict(told)))
    rows = [[nodes, 1000, measured, 0.0, 0.0, 1.0, 0.0] for nodes in (1, 4)]
    (tmp_path / "scale.json").write_text(json.dumps({"rows": rows}))
    words = ["--costs", tmp_path / "costs.json", "--measured", tmp_path / "scale.json", "--trials", 500, "--json", tmp_path]
    monkeypatch.setattr(sys, "argv", ["cluster_sim.py", *map(str, words)])
    assert sim.main() == code
    shown = capsys.readouterr()
    assert ("What breaks" in shown.out) == (code == 0)
    assert (tmp_path / "cluster_sim.json").exists() == (code == 0)
    assert ("says nothing of larger clusters" in shown.err) == (code == 1)
