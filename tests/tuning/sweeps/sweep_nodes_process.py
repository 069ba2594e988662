"""Run by a test: a sweep on a cluster of two nodes on this machine, one of which is lost on the way.

Prints what it has found as JSON. `RAY_TMPDIR` keeps the cluster's address from processes that look for one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from lit_sb3_ray.tuning.sweeps.dispatch import Observer
from lit_sb3_ray.tuning.sweeps.sweep import Sweep, run_sweep

SETTINGS = {
    "args": None,
    "n_timesteps": 160,
    "save_freq": 32,
    "eval_freq": 0,
    "n_eval_episodes": 1,
    "device": "cpu",
    "verbose": 0,
    "hyperparams": {"n_steps": 32, "n_envs": 1, "normalize": False},
    "env_kwargs": {"seconds": 0.05},
    "gym_packages": ["slow_envs"],
}


class Losing(Observer):
    """Takes a node away once runs on both nodes have taken a checkpoint."""

    def __init__(self, cluster, node):
        self.cluster, self.node = cluster, node
        self.lines = []
        self.lost = False

    def tell(self, line):
        """Keeps an event."""
        self.lines.append(line)

    def show(self, progress):
        """Looks whether it is time."""
        steps = [report.num_timesteps or 0 for _, report in progress.running if report is not None]
        if not self.lost and len(steps) == 2 and min(steps) > 40:
            self.lost = True
            self.cluster.remove_node(self.node, allow_graceful=False)


def main(folder):
    """Sweeps two seeds."""
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, connect=True, head_node_args={**node, "include_dashboard": False})
    try:
        second = cluster.add_node(**node)
        cluster.wait_for_nodes()
        observer = Losing(cluster, second)
        result = run_sweep(Sweep(Path(folder), ("ppo",), ("Slow-v0",), (0, 1), SETTINGS), observer=observer)
        rows = [(row.state, row.num_timesteps, row.restarts) for row in result.rows]
        outputs = [row.combination.output(result.folder).read_text() for row in result.rows]
    finally:
        ray.shutdown()
        cluster.shutdown()
    resumed = sum("Going on from checkpoint" in output for output in outputs)
    print(json.dumps({"rows": rows, "lost": observer.lost, "resumed": resumed, "lines": observer.lines}))


if __name__ == "__main__":
    main(sys.argv[1])
