"""Many trials that do nothing but report: what the machinery of a study costs, and whether that grows with its length.

    python benchmarks/scale.py [--trials 1000] [--nodes 1 4] [--json benchmarks/results]

Each trial reports five times. The table has the time per trial of the first and of the last hundred trials and how much memory
of the driver a trial leaves behind. With several nodes (of one `ray.cluster_utils.Cluster`) one is killed half way.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from comparison import report
from optuna.samplers import RandomSampler
from ray import tune
from ray.cluster_utils import Cluster

from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.experiment.study_options import StudyOptions
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.drivers import enter
from lit_sb3_ray.tuning.opening import OpenStudy
from lit_sb3_ray.tuning.rows import counts
from lit_sb3_ray.tuning.running import Work, run_trials
from lit_sb3_ray.tuning.schedule.schedulers import build_scheduler
from lit_sb3_ray.tuning.search import StudySearch
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.storage import open_study
from lit_sb3_ray.tuning.study_folder import StudyFolder

if TYPE_CHECKING:
    from optuna import Trial

REPORTS, CPUS = 5, 4
MARKS = tuple(range(1, REPORTS + 1))


class Reporter(tune.Trainable):
    """A trial that has nothing to do."""

    def setup(self, config: dict[str, Any]) -> None:
        """Begins at the first report."""
        self.done = 0

    def step(self) -> dict[str, Any]:
        """Reports."""
        self.done += 1
        value = self.config["params"]["x"] * self.done
        return {
            "mean_reward": value,
            "mark": self.done,
            "timesteps_total": self.done,
            "steps_per_second": 0.0,
            "spread": 0.0,
            "seed_values": [value],
            "jumped": [],
            "finished": self.done == REPORTS,
            "done": self.done == REPORTS,
        }

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begins anew."""
        self.done = 0
        return True


class Clock(StudySearch):
    """A search that tells when each trial ends."""

    ending: Callable[[], None]

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Tells."""
        super().on_trial_complete(trial_id, result, error)
        self.ending()


@dataclass(frozen=True)
class ReportingStudy:
    """A study of trials that only report, ready to run."""

    opened: OpenStudy
    search: Clock
    work: Work

    def run(self) -> None:
        """Runs it."""
        run_trials(self.opened, self.search, self.work, StudyOptions(), SignalStop(StopGuard()), None)


def open_reporting(
    folder: StudyFolder, kind: type[Clock], trials: int, slots: int, ending: Callable[[], None]
) -> ReportingStudy:
    """Opens a study of trials that only report, so many of them at once; `ending` is called at the end of each."""

    def draw(trial: Trial) -> dict[str, Any]:
        trial.suggest_float("x", 0.0, 1.0)
        return {}

    study = open_study(str(folder.journal), "reporting")
    study.sampler = RandomSampler(seed=0)
    lease = enter(study, "new", "reporting")
    opened = OpenStudy(study, str(folder.journal), folder, lease, trials, find_space("ppo"))
    search = kind(study, trials, draw, lease=lease)
    search.ending = ending
    return ReportingStudy(
        opened, search, Work(tune.with_resources(Reporter, {"CPU": 1}), slots, build_scheduler("asha", MARKS, 0))
    )


def main() -> None:
    """Measures every number of nodes asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [[nodes, args.trials, *measure(nodes, args.trials)] for nodes in args.nodes]
    columns = ["nodes", "trials", "wall s", "first 100, ms each", "last 100, ms each", "last / first", "driver MB a trial"]
    report("Trials that only report", columns, rows, args.json and args.json / "scale.json")


def resident_bytes() -> int:
    """The memory that this process has in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(nodes: int, trials: int) -> list[float]:
    """Runs a study on so many nodes and returns the row's figures."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": CPUS})
    others = [cluster.add_node(num_cpus=CPUS) for _ in range(nodes - 1)]
    ray.init(address=cluster.address, log_to_driver=False)
    ended: list[float] = []
    memory: list[int] = []

    def ending() -> None:
        ended.append(time.perf_counter())
        memory.append(resident_bytes())
        if others and len(ended) == trials // 2:
            cluster.remove_node(others.pop(), allow_graceful=False)

    try:
        with tempfile.TemporaryDirectory() as path:
            study = open_reporting(StudyFolder(Path(path)), Clock, trials, CPUS * nodes, ending)
            begun = time.perf_counter()
            study.run()
            wall = time.perf_counter() - begun
            rows = study.opened.study.get_trials(deepcopy=False)
            if sum(map(counts, rows)) != trials or any(row.state.name == "RUNNING" for row in rows):
                raise RuntimeError(f"{len(rows)} rows, not {trials} trials that are over")
    finally:
        ray.shutdown()
        cluster.shutdown()
    first, last = (1000 * (part[-1] - part[0]) / (len(part) - 1) for part in (ended[:100], ended[-100:]))
    grown = (memory[-1] - memory[len(memory) // 10]) / 2**20 / (0.9 * len(memory))
    return [wall, first, last, last / first, grown]


if __name__ == "__main__":
    main()
