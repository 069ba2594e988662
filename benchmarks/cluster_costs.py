"""What the machinery of a study costs on this machine, measured on one node: the inputs of `cluster_sim.py`."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import gymnasium as gym
import optuna
import ray
from optuna.samplers import RandomSampler, TPESampler
from ray.cluster_utils import Cluster
from scale import Clock, open_reporting, resident_bytes

from lit_sb3_ray.tuning.room import TUNE_SETTINGS
from lit_sb3_ray.tuning.storage import open_study
from lit_sb3_ray.tuning.study_folder import StudyFolder
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

TICKS = os.sysconf("SC_CLK_TCK")
IDLE_S = 8.0
LOOK_EVERY = 4
KINDS = ("workers", "services", "gcs")


@dataclass(frozen=True)
class Costs:
    """Measured costs. Seconds are of a processor's work, or are said to pass.

    Attributes:
        cores: Processors of this machine.
        results: Results that a trial reports, on average.
        driver_result_s: The driver's one thread, for one result with its part of the trial's start and end.
        driver_live_s: The same, more for each trial that is alive.
        driver_finished_s: The same, more for each trial that has ended.
        beside_result_s: The driver's other threads, for one result.
        worker_trial_s: All processes for trials, for one trial; Ray begins some for a trial that then takes over another one.
        services_result_s: Ray's services, for one result.
        driver_node_s: The driver's thread, more for a result for each node beside the first.
        services_node_s: Ray's services, more for a result for each node beside the first.
        trial_start_s: Starting the process of a trial.
        node_start_s: Starting Ray's services of a node.
        node_s: Ray's services of a node that does nothing, a second.
        env_actor_s: Starting an env actor, all of its node's work.
        gcs_actor_s: Starting and ending it, the work of Ray's control service alone.
        ask_s: Drawing a trial by TPE out of nothing.
        ask_finished_s: The same, more for each trial that has ended.
        journal_lines: Lines that a trial adds to the journal.
        journal_bytes: Bytes that a trial adds to the journal.
        append_s: Seconds that pass while a line is added to the journal, on this machine's disk.
        files: Files that Tune writes for a trial.
        file_bytes: Bytes of these.
        driver_mb: The driver's memory before it has begun.
        driver_trial_mb: Its memory, more for each trial that has ended.
    """

    cores: int
    results: float
    driver_result_s: float
    driver_live_s: float
    driver_finished_s: float
    beside_result_s: float
    worker_trial_s: float
    services_result_s: float
    driver_node_s: float
    services_node_s: float
    trial_start_s: float
    node_start_s: float
    node_s: float
    env_actor_s: float
    gcs_actor_s: float
    ask_s: float
    ask_finished_s: float
    journal_lines: float
    journal_bytes: float
    append_s: float
    files: float
    file_bytes: float
    driver_mb: float
    driver_trial_mb: float


@dataclass
class Watched:
    """A short study as it was seen.

    Attributes:
        slots: Trials at once.
        thread: Work of the driver's thread at the end of each trial.
        process: Work of the driver's process, likewise.
        memory: Its memory, likewise.
        results: Results up to there.
        workers: Work of processes for trials, whenever `LOOK_EVERY` trials more have ended.
        spent: Work of other processes by kind, over the whole study.
        wall: Seconds that have passed.
        journal: Bytes and lines of the journal.
        tree: Files and bytes in Tune's folder.
    """

    slots: int
    thread: list[float] = field(default_factory=list)
    process: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    wall: float = 0.0
    journal: tuple[int, int] = (0, 0)
    tree: tuple[int, int] = (0, 0)

    def per_result(self, series: list[float], first: float, last: float) -> float:
        """Work for a result, between two parts of the study."""
        begin, end = (min(len(series) - 1, int(part * len(series))) for part in (first, last))
        return (series[end] - series[begin]) / max(1, self.results[end] - self.results[begin])


def measure_costs(few: int = 4, many: int = 8, trials: int = 60, long: int = 300) -> Costs:
    """Measures everything; takes some minutes.

    A node has as many CPUs as there are trials at once, as in `scale.py`: where some are left, Ray begins a process for each
    trial before Tune gives it one that is free.

    Args:
        few: Trials at once in the longest study.
        many: Trials at once in two others, on one node and on two.
        trials: Trials of these two.
        long: Trials of the longest, which tells what finished trials cost.
    """
    for name, value in TUNE_SETTINGS.items():
        os.environ.setdefault(name, value)
    with _cluster(few) as cluster:
        lasting = watch_study(few, long)
        # Afterwards, since Ray's services still start for some seconds after a node is there.
        idle = _idle()
        env_actor, gcs_actor = _env_actors()
        ledger = Ledger()
        cluster.add_node(num_cpus=many - few)
        cluster.wait_for_nodes()
        time.sleep(IDLE_S)
        node_start = ledger.spent()["services"] - 2 * idle * IDLE_S
        wide = watch_study(many, trials)
    with _cluster(many):
        large = watch_study(many, trials)
    ask, ask_finished = _asks()
    early, late = lasting.per_result(lasting.thread, 0.05, 0.35), lasting.per_result(lasting.thread, 0.65, 1.0)
    many_s = large.per_result(large.thread, 0.2, 1.0)
    live = max(0.0, (many_s - early) / (many - few))
    finished = max(0.0, (late - early) / (0.625 * long))
    results = lasting.results[-1]
    beside = [b - a for a, b in zip(lasting.thread, lasting.process, strict=True)]
    services = lasting.spent["services"] - idle * lasting.wall
    narrow_s, wide_s = (
        (study.spent["services"] - nodes * idle * study.wall) / study.results[-1] for study, nodes in ((large, 1), (wide, 2))
    )
    worker, start = _workers(lasting)
    return Costs(
        cores=os.cpu_count() or 1,
        results=results / long,
        driver_result_s=max(1e-4, early - few * live - 0.2 * long * finished),
        driver_live_s=live,
        driver_finished_s=finished,
        beside_result_s=lasting.per_result(beside, 0.1, 1.0),
        worker_trial_s=worker,
        services_result_s=max(0.0, services) / results,
        driver_node_s=max(0.0, wide.per_result(wide.thread, 0.2, 1.0) - many_s),
        services_node_s=max(0.0, wide_s - narrow_s),
        trial_start_s=start,
        node_start_s=max(0.0, node_start),
        node_s=max(0.0, idle),
        env_actor_s=env_actor,
        gcs_actor_s=gcs_actor,
        ask_s=ask,
        ask_finished_s=ask_finished,
        journal_lines=lasting.journal[1] / long,
        journal_bytes=lasting.journal[0] / long,
        append_s=_append(),
        files=lasting.tree[0] / long,
        file_bytes=lasting.tree[1] / long,
        driver_mb=lasting.memory[0] / 2**20,
        driver_trial_mb=(lasting.memory[-1] - lasting.memory[long // 10]) / 2**20 / (0.9 * long),
    )


@contextmanager
def _cluster(cpus: int) -> Iterator[Cluster]:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def _workers(study: Watched) -> tuple[float, float]:
    """Work of the processes for trials: for one trial when all are there, and to start one."""
    trials, slots = LOOK_EVERY * len(study.workers), study.slots
    begin = len(study.workers) // 3
    each = (study.workers[-1] - study.workers[begin]) / (trials - LOOK_EVERY * (begin + 1))
    return each, max(0.0, study.workers[-1] - each * trials) / slots


def watch_study(slots: int, trials: int) -> Watched:
    """Runs a study of trials that only report, and looks at who works."""
    seen, total = Watched(slots), [0]
    main = threading.get_native_id()

    class Counting(Clock):
        """Counts results, too."""

        def on_trial_result(self, trial_id: str, result: dict[str, object]) -> None:
            """Counts one that the trial goes on after."""
            total[0] += 1
            super().on_trial_result(trial_id, result)

    def ending() -> None:
        total[0] += 1
        seen.thread.append(_work(f"/proc/self/task/{main}/stat"))
        seen.process.append(_work("/proc/self/stat"))
        seen.memory.append(resident_bytes())
        seen.results.append(total[0])
        if len(seen.results) % LOOK_EVERY == 0:
            seen.workers.append(ledger.spent()["workers"])
        if len(seen.results) == trials:
            # The trials' processes are still there; what they have done is not told once they are gone.
            seen.spent = ledger.spent()

    with tempfile.TemporaryDirectory() as path:
        folder = StudyFolder(Path(path))
        study = open_reporting(folder, Counting, trials, slots, ending)
        ledger, begun = Ledger(), time.monotonic()
        study.run()
        seen.wall = time.monotonic() - begun
        lines = folder.journal.read_bytes()
        seen.journal = (len(lines), lines.count(b"\n"))
        sizes = [file.stat().st_size for file in (folder.path / "trials").rglob("*") if file.is_file()]
        seen.tree = (len(sizes), sum(sizes))
    return seen


def processes() -> dict[int, tuple[str, float]]:
    """The processes that this one has started: trials, Ray's control service and its other services; and their work so far.

    The work of children that have ended is left out: a raylet would be taken to have done what its workers have.
    """
    found = {}
    for pid in _descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            work = _work(f"/proc/{pid}/stat")
        except OSError:
            continue
        if not command:
            # It has ended, and nothing tells what it was.
            continue
        is_worker = command.startswith(b"ray::") or b"default_worker.py" in command
        found[pid] = ("workers" if is_worker else "gcs" if b"gcs_server" in command else "services", work)
    return found


class Ledger:
    """What the processes that this one has started have done since; of one that has ended, what was last seen."""

    def __init__(self) -> None:
        self._before = self._seen = processes()

    def spent(self) -> dict[str, float]:
        """Work by kind; that of the control service is part of the services' work, too."""
        self._seen = self._seen | processes()
        spent = dict.fromkeys(KINDS, 0.0)
        for pid, (kind, work) in self._seen.items():
            spent[kind] += work - self._before.get(pid, ("", 0.0))[1]
        return spent | {"services": spent["services"] + spent["gcs"]}


def _descendants(root: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, grown = {root}, True
    while grown:
        new = {pid for pid, parent in parents.items() if parent in found} - found
        found, grown = found | new, bool(new)
    return found - {root}


def _work(file: str) -> float:
    """Seconds of a processor that a process, or a thread, has used."""
    fields = Path(file).read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def _idle() -> float:
    """Work of Ray's services, a second, when nothing goes on."""
    ledger = Ledger()
    time.sleep(IDLE_S)
    return ledger.spent()["services"] / IDLE_S


def _env_actors(actors: int = 6, rounds: int = 3) -> tuple[float, float]:
    """Work of starting an env actor, everybody's; and that of the control service until it is gone."""
    spent = gcs = 0.0
    for _ in range(rounds):
        ledger = Ledger()
        env = RayVecEnv([lambda: gym.make("CartPole-v1")] * actors, envs_per_actor=1, num_cpus_per_actor=0.5)
        env.reset()
        there = ledger.spent()
        env.close()
        spent += there["workers"] + there["services"]
        gcs += ledger.spent()["gcs"]
    return spent / (actors * rounds), gcs / (actors * rounds)


def _asks() -> tuple[float, float]:
    """What TPE takes to draw a trial of ppo's space: of nothing, and more for each trial that has ended."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    points = []
    for finished in (100, 400, 1600):
        study = optuna.create_study(sampler=TPESampler(n_startup_trials=0, seed=0), direction="maximize")
        space = {f"x{index}": optuna.distributions.FloatDistribution(0.0, 1.0) for index in range(9)}
        drawn = RandomSampler(seed=1)
        study.sampler, sampler = drawn, study.sampler
        for _ in range(finished):
            trial = study.ask(space)
            study.tell(trial, trial.params["x0"])
        study.sampler = sampler
        times = []
        for _ in range(5):
            begun = time.process_time()
            study.ask(space)
            times.append(time.process_time() - begun)
        points.append((finished, statistics.median(times)))
    (low, first), (high, last) = points[0], points[-1]
    slope = max(0.0, (last - first) / (high - low))
    return max(0.0, first - slope * low), slope


def _append(lines: int = 50) -> float:
    """Seconds that pass for a line of a journal: lock, write, flush, unlock."""
    with tempfile.TemporaryDirectory() as path:
        study = open_study(str(Path(path) / "journal.log"), "append")
        begun = time.perf_counter()
        for number in range(lines):
            study.set_user_attr("number", number)
        return (time.perf_counter() - begun) / lines
