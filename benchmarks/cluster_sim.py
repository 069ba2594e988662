"""How a study of 10,000 trials with 8 env actors each behaves on 100 nodes: a simulation, with measured costs as its inputs.

    python benchmarks/cluster_sim.py [--costs FILE] [--measured FILE] [--nodes 100] [--trials 10000] [--json FOLDER]

1. What the machinery costs is measured on one node of this machine (`cluster_costs.py`), or read from an earlier run's file.
2. The simulation predicts two runs of `benchmarks/scale.py`: 1,000 trials on one node, and on four of which one is killed half
   way. They are carried out now, or read from the file that `scale.py` has written. If the prediction is off by more than
   1.5x, that is all this says, and it ends with 1.
3. Then the large study is simulated, and for every resource it is worked out at which size it is used up.

The driver is one thread that serves events one after another. On the machine that is measured, all share the processors; on a
cluster the driver and Ray's control service have processors of their own.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import statistics
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comparison import report

if TYPE_CHECKING:
    from cluster_costs import Costs

TOLERANCE = 1.5
# As `scale.py` has them: trials, and slots of a node.
SCALE_TRIALS, SCALE_SLOTS = 1000, 4
SCALE_NODES = (1, 4)
# What a cluster is taken to have: memory of the head, and what its storage takes, both in MB.
HEAD_MB, STORAGE_MB_S = 32_000, 1000
# Calls to Ray's control service. A trial's placement group is made, awaited and removed; an env actor is registered, placed,
# reported alive, killed and reported dead. The trial's own actor is used again, and results go past the control service.
GROUP_CALLS, ACTOR_CALLS = 3, 5


@dataclass(frozen=True)
class Plan:
    """A study on a cluster. None of it is measured: it is what one asks about.

    Attributes:
        trials: Trials.
        nodes: Nodes, beside the head.
        cpus_per_node: CPUs of each.
        env_actors: Env actors of a trial; each has a CPU, as the learner has.
        trial_s: Seconds that a whole trial takes.
        reports: Evaluations of a whole trial.
        kept: Share of the trials that ASHA lets go on at each of its marks.
        checkpoint_s: Seconds between two checkpoints of a trial, at least.
        checkpoint_mb: Size of one.
    """

    trials: int = 10_000
    nodes: int = 100
    cpus_per_node: int = 64
    env_actors: int = 8
    trial_s: float = 1800.0
    reports: int = 5
    kept: float = 0.5
    checkpoint_s: float = 30.0
    checkpoint_mb: float = 1.0

    @property
    def slots(self) -> int:
        """Trials at once."""
        return self.nodes * (self.cpus_per_node // (1 + self.env_actors))


class Machine:
    """Processors that share themselves out evenly among jobs, no job having more than one; `background` is always at work."""

    def __init__(self, cores: int, background: float) -> None:
        self.now = 0.0
        self._cores = max(0.1, cores - background)
        self._jobs: dict[int, float] = {}
        self._done: dict[int, Any] = {}
        self._next = 0

    def begin(self, work: float, done: Any) -> None:
        """Adds a job of so many seconds of a processor; `done()` is called at its end."""
        self._jobs[self._next], self._done[self._next] = max(work, 1e-9), done
        self._next += 1

    def run(self) -> None:
        """Lets time pass until nothing is left to do."""
        while self._jobs:
            speed = min(1.0, self._cores / len(self._jobs))
            job = min(self._jobs, key=self._jobs.__getitem__)
            work = self._jobs.pop(job)
            self.now += work / speed
            for other in self._jobs:
                self._jobs[other] -= work
            self._done.pop(job)()


class Reporting:
    """`scale.py` on one machine: trials that do nothing but report to the driver."""

    def __init__(self, costs: Costs, nodes: int, trials: int) -> None:
        self.costs, self.trials, self.left, self.ended = costs, trials, trials, 0
        self.slots, self.live, self.lost = nodes * SCALE_SLOTS, 0, 0
        self.dies = SCALE_SLOTS if nodes > 1 else 0
        self.machine = Machine(costs.cores, nodes * costs.node_s)
        self.queue: list[Any] = []
        self.is_busy = False
        self.random = random.Random(0)

    def seconds(self) -> float:
        """Runs the study to its end."""
        for _ in range(self.slots // SCALE_SLOTS):
            self.machine.begin(self.costs.node_start_s, lambda: None)
        for _ in range(self.slots):
            self.machine.begin(self.costs.trial_start_s, self._draw)
        self.machine.run()
        return self.machine.now

    def _draw(self) -> None:
        """A process is free: it takes the next trial, or ends."""
        if self.left < 1:
            return
        self.left -= 1
        self.live += 1
        self._report(self._length())

    def _length(self) -> int:
        """Results of a trial; on average as many as measured."""
        low = int(self.costs.results)
        return low + (self.random.random() < self.costs.results - low)

    def _report(self, results: int) -> None:
        """The process makes a result, and Ray's services carry it; then the driver is asked."""
        costs = self.costs
        work = costs.worker_trial_s / costs.results + costs.services_result_s + costs.beside_result_s
        work += costs.services_node_s * (self.slots // SCALE_SLOTS - 1)
        self.machine.begin(work, lambda: self._ask(results - 1))

    def _ask(self, results: int) -> None:
        self.queue.append(results)
        self._serve()

    def _serve(self) -> None:
        """The driver's thread takes the next event."""
        if self.is_busy or not self.queue:
            return
        self.is_busy = True
        results = self.queue.pop(0)
        work = driver_s(self.costs, self.live, self.ended, self.slots // SCALE_SLOTS)
        self.machine.begin(work, lambda: self._served(results))

    def _served(self, results: int) -> None:
        self.is_busy = False
        if results > 0:
            self._report(results)
        else:
            self.ended += 1
            self.live -= 1
            if self.dies and self.ended >= self.trials // 2:
                # One of the four processes of the killed node after another is not there any more, and its trial begins anew.
                self.dies -= 1
                self.left += 1
                self.lost += 1
            else:
                self._draw()
        self._serve()


def driver_s(costs: Costs, live: float, finished: float, nodes: int) -> float:
    """Work of the driver's thread for one result."""
    trials = costs.driver_live_s * live + costs.driver_finished_s * finished
    return costs.driver_result_s + trials + costs.driver_node_s * (nodes - 1)


@dataclass(frozen=True)
class Outcome:
    """What the large study has come to.

    Attributes:
        hours: From its first to its last trial.
        driver: Share of the time that the driver's thread is at work: on average, and in the busiest tenth.
        waiting_s: Seconds that a result waits for the driver: the median, and the 99th percentile.
        calls: Control-plane calls a second, on average.
        gcs: Share of a processor that the control service uses.
        results: Results in all.
        memory_mb: The driver's memory at the end.
        lines: Lines of the journal a second, and its bytes at the end.
        files: Files that Tune has written.
        checkpoint_mb: Bytes of checkpoints a second, in MB.
    """

    hours: float
    driver: tuple[float, float]
    waiting_s: tuple[float, float]
    calls: float
    gcs: float
    results: int
    memory_mb: float
    lines: tuple[float, float]
    files: float
    checkpoint_mb: float


def simulate(costs: Costs, plan: Plan, seed: int = 0) -> Outcome:
    """Simulates a study on a cluster: slots that train, and one driver that serves their results one after another."""
    rng = random.Random(seed)
    events: list[tuple[float, int, int]] = []
    part = plan.trial_s / plan.reports
    begun, ended, results, free_at = 0, 0, 0, 0.0
    busy: list[tuple[float, float]] = []
    waits: list[float] = []
    live = min(plan.slots, plan.trials)
    for slot in range(live):
        # Drawing and placing them takes the driver its time, one after another.
        heapq.heappush(events, (slot * costs.ask_s + part * rng.lognormvariate(0.0, 0.3), slot, 1))
        begun += 1
    now = 0.0
    while events:
        now, slot, number = heapq.heappop(events)
        results += 1
        goes_on = number < plan.reports and rng.random() < (plan.kept if number < plan.reports - 1 else 1.0)
        work = driver_s(costs, live, ended, plan.nodes) + costs.append_s * costs.journal_lines / costs.results
        if not goes_on and begun < plan.trials:
            work += costs.ask_s + costs.ask_finished_s * ended
        starts = max(now, free_at)
        free_at = starts + work
        waits.append(free_at - now)
        busy.append((starts, work))
        if goes_on:
            heapq.heappush(events, (free_at + part * rng.lognormvariate(0.0, 0.3), slot, number + 1))
            continue
        ended += 1
        if begun < plan.trials:
            begun += 1
            pause = actors_start_s(costs, plan)
            heapq.heappush(events, (free_at + pause + part * rng.lognormvariate(0.0, 0.3), slot, 1))
        else:
            live -= 1
    wall = max(now, free_at)
    calls = (GROUP_CALLS + ACTOR_CALLS * plan.env_actors) * plan.trials / wall
    gcs = costs.gcs_actor_s * (plan.env_actors + 1) * plan.trials / wall + costs.node_s * 0.05 * plan.nodes
    share = min(1.0, 60.0 / plan.checkpoint_s) / 60.0
    return Outcome(
        hours=wall / 3600,
        driver=(sum(work for _, work in busy) / wall, _busiest(busy, wall)),
        waiting_s=(statistics.median(waits), sorted(waits)[int(0.99 * len(waits))]),
        calls=calls,
        gcs=gcs,
        results=results,
        memory_mb=costs.driver_mb + costs.driver_trial_mb * plan.trials,
        lines=(costs.journal_lines * plan.trials / wall, costs.journal_bytes * plan.trials / 2**20),
        files=costs.files * plan.trials,
        checkpoint_mb=min(plan.slots, plan.trials) * share * plan.checkpoint_mb,
    )


def actors_start_s(costs: Costs, plan: Plan) -> float:
    """Seconds until the env actors of a trial are there: they start side by side, as many as the node has processors."""
    at_once = max(1, min(plan.env_actors, plan.cpus_per_node))
    return costs.env_actor_s * plan.env_actors / at_once


def _busiest(busy: list[tuple[float, float]], wall: float) -> float:
    parts = [0.0] * 10
    for starts, work in busy:
        parts[min(9, int(10 * starts / wall))] += work
    return max(parts) / (wall / 10)


def limits(costs: Costs, plan: Plan) -> list[list[Any]]:
    """For every resource: how much of it the plan uses, and at how many nodes, other things equal, it is used up."""
    rows: list[list[Any]] = []
    sizes = [int(plan.nodes * factor) for factor in (0.25, 0.5, 1, 2, 4, 8, 16, 32)]
    grown = {nodes: replace(plan, nodes=nodes, trials=plan.trials * nodes // plan.nodes) for nodes in sizes}
    outcomes = {nodes: simulate(costs, larger) for nodes, larger in grown.items()}
    for name, used in (
        ("driver's thread, busiest tenth", lambda outcome: outcome.driver[1]),
        ("control service, one processor", lambda outcome: outcome.gcs),
        (f"driver's memory, of {HEAD_MB:,} MB", lambda outcome: outcome.memory_mb / HEAD_MB),
        ("journal, one line after another", lambda outcome: outcome.lines[0] * costs.append_s),
        (f"storage, of {STORAGE_MB_S:,} MB/s", lambda outcome: outcome.checkpoint_mb / STORAGE_MB_S),
    ):
        full = next((nodes for nodes in sizes if used(outcomes[nodes]) >= 1.0), None)
        rows.append([name, used(outcomes[plan.nodes]), f"{full:,}" if full else f"beyond {sizes[-1]:,}"])
    return rows


def main() -> int:
    """Measures or reads the costs, checks the simulation, and says what it shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", type=Path, default=None, help="JSON file with costs; it is written if it is not there")
    parser.add_argument("--measured", type=Path, default=None, help="JSON file, or files' folder, that `scale.py` has written")
    parser.add_argument("--nodes", type=int, default=Plan.nodes)
    parser.add_argument("--trials", type=int, default=Plan.trials)
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    costs = load_costs(args.costs)
    report("Measured costs", ["cost", "value"], [[name, f"{value:.3g}"] for name, value in asdict(costs).items()], None)
    rows = check(costs, measured_runs(args.measured))
    report("1,000 trials that only report", ["nodes", "measured s", "predicted s", "ratio"], rows, None)
    if not all(1 / TOLERANCE <= row[-1] <= TOLERANCE for row in rows):
        print(f"The simulation is off by more than {TOLERANCE}x, so it says nothing of larger clusters.", file=sys.stderr)
        return 1
    plan = Plan(trials=args.trials, nodes=args.nodes)
    outcome = simulate(costs, plan)
    assumed = {**asdict(plan), "slots": plan.slots}
    report("Assumed", ["", "value"], [[name, str(value)] for name, value in assumed.items()], None)
    told = [[name, _words(value)] for name, value in asdict(outcome).items()]
    report(f"{plan.trials:,} trials on {plan.nodes} nodes", ["", "value"], told, None)
    path = args.json and args.json / "cluster_sim.json"
    columns = ["resource", "share used", "used up at nodes (trials grow alike)"]
    details = {"costs": asdict(costs), "predictions": rows, "plan": asdict(plan), "outcome": asdict(outcome)}
    report("What breaks", columns, limits(costs, plan), path, **details)
    return 0


def check(costs: Costs, measured: dict[int, float]) -> list[list[float]]:
    """Compares predicted runs of `scale.py` with measured ones: nodes, both in seconds, and their ratio."""
    predicted = {nodes: Reporting(costs, nodes, SCALE_TRIALS).seconds() for nodes in measured}
    return [[nodes, seconds, predicted[nodes], predicted[nodes] / seconds] for nodes, seconds in measured.items()]


def measured_runs(path: Path | None) -> dict[int, float]:
    """Seconds of `scale.py`'s runs by nodes: read from a file of its, or from all in a folder, or carried out now."""
    if path is None:
        import scale

        return {nodes: scale.measure(nodes, SCALE_TRIALS)[0] for nodes in SCALE_NODES}
    files = sorted(path.rglob("scale*.json")) if path.is_dir() else [path]
    rows = [row for file in files for row in json.loads(file.read_text())["rows"]]
    return {int(row[0]): float(row[2]) for row in rows if row[1] == SCALE_TRIALS}


def _words(value: Any) -> str:
    return ", ".join(f"{part:,.3g}" for part in (value if isinstance(value, tuple) else (value,)))


def load_costs(path: Path | None) -> Costs:
    """Reads costs from a file, or measures them, and writes the file."""
    from cluster_costs import Costs, measure_costs

    if path is not None and path.exists():
        return Costs(**json.loads(path.read_text()))
    costs = measure_costs()
    if path is not None:
        path.write_text(json.dumps(asdict(costs), indent=1) + "\n")
    return costs


if __name__ == "__main__":
    sys.exit(main())
