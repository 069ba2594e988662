"""Run by a test: a study on a cluster on this machine. It has one node, gets another while the first trial is at step 30, and
loses that one while both trials are there.

Prints what it has found as JSON. `RAY_TMPDIR` keeps the cluster's address from processes that look for one.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster
from studies import POINT, enqueue, met, plan, rows_of, study_of

WAIT = {"role": "train", "when": "step", "at": 30, "what": "wait"}


def main(folder):
    """Studies two trials with the same parameters."""
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    # A thread adds a node, and may set no signal handlers.
    cluster = Cluster(True, connect=True, head_node_args={**node, "include_dashboard": False}, shutdown_at_exit=False)
    try:

        def wait_for(number):
            while not (folder / "met.txt").exists() or len(met(folder)) < number:
                time.sleep(0.1)

        def lose():
            wait_for(1)
            second = cluster.add_node(**node)
            wait_for(2)
            waiting = [pid for _, pid in met(folder)]
            cluster.remove_node(second, allow_graceful=False)
            # The lost node's process may outlive it for a moment, in which its trial would get to its end.
            while all(Path(f"/proc/{pid}").exists() for pid in waiting):
                time.sleep(0.1)
            (folder / "gate").touch()

        thread = threading.Thread(target=lose, daemon=True)
        thread.start()
        where = enqueue(folder, POINT, POINT)
        settings = {"options": {"checkpoint_every": 0.0}, "n_jobs": None, **where, **plan(folder, WAIT, WAIT)}
        result = study_of(folder, **settings).hyperparameters_optimization()
        thread.join()
        trials = result.folder.glob("trials/trial_*/result.json")
        hosts = [[json.loads(line)["pid"] for line in path.read_text().splitlines()] for path in sorted(trials)]
    finally:
        ray.shutdown()
        cluster.shutdown()
    rows = [(row.state.name, list(row.intermediate_values.items())) for row in rows_of(folder)]
    print(json.dumps({"rows": rows, "processes": [len(set(pids)) for pids in hosts]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
