"""Run by a test: a cluster of two nodes on this machine, environments on both, compared with DummyVecEnv.

Prints what it has found as JSON. `RAY_TMPDIR` keeps the cluster's address from processes that look for one.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from functools import partial

import numpy as np
import ray
from ray.cluster_utils import Cluster
from stable_baselines3.common.vec_env import DummyVecEnv
from vec.catalogue import build
from vec.fault_envs import WithServer
from vec.processes import ended_within
from vec.test_conformance import assert_same_steps

from lit_sb3_ray.vec.ray_vec_env import RayVecEnv


class Kept(logging.Handler):
    """Keeps messages."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        """Keeps one."""
        self.messages.append(record.getMessage())


def paths(kept):
    """Tells how each actor is reached: shared memory on the learner's node, calls on others."""
    return [message.rpartition("reached by ")[2] for message in kept.messages if "reached by" in message]


def lose_children(kept):
    """Kills an actor of the other node and closes the rest; lists the processes of environments that are left then."""
    kept.messages.clear()
    venv = RayVecEnv([partial(WithServer, index) for index in range(4)], envs_per_actor=1, num_cpus_per_actor=1)
    far = paths(kept).index("actor calls")
    venv.reset()
    first = venv.get_attr("child")
    os.kill(venv.env_method("pid", indices=far)[0], signal.SIGKILL)
    _, _, dones, _ = venv.step(np.zeros(4, np.int64))
    assert np.flatnonzero(dones).tolist() == [far]
    assert ended_within(first[far], 10)
    processes = [*first, *venv.get_attr("child"), *venv.env_method("pid")]
    venv.close()
    return [pid for pid in processes if not ended_within(pid, 10)]


def main():
    """Plays on two nodes, then takes one away."""
    kept = Kept()
    logging.getLogger("lit_sb3_ray").addHandler(kept)
    logging.getLogger("lit_sb3_ray").setLevel("INFO")
    node = {"num_cpus": 2, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, connect=True, head_node_args=node)
    found = {}
    try:
        second = cluster.add_node(**{key: value for key, value in node.items() if key != "include_dashboard"})
        cluster.wait_for_nodes()
        builders = [partial(build, "dict", "box")] * 4
        for count, arguments in ((2, {"envs_per_actor": 1, "num_cpus_per_actor": 1}), (8, {})):
            RayVecEnv([builders[0]] * count, **arguments).close()
        found["where there is room"] = paths(kept)
        found["children left"] = lose_children(kept)
        kept.messages.clear()
        venv = RayVecEnv(builders, envs_per_actor=1, num_cpus_per_actor=1)
        found["paths"] = paths(kept)
        assert_same_steps(venv, DummyVecEnv(builders), 300)
        start = time.perf_counter()
        for _ in range(200):
            venv.step(np.zeros((4, 2), np.float32))
        found["steps_per_second"] = 800 / (time.perf_counter() - start)
        cluster.add_node(num_cpus=2, object_store_memory=80_000_000)
        cluster.wait_for_nodes()
        cluster.remove_node(second, allow_graceful=False)
        # The processes of a node that is lost may live on for some seconds.
        restarted = set()
        deadline = time.monotonic() + 100
        while len(restarted) < 2 and time.monotonic() < deadline:
            _, _, dones, infos = venv.step(np.zeros((4, 2), np.float32))
            for index, info in enumerate(infos):
                if "env_restarted" in info:
                    assert dones[index]
                    restarted.add(index)
        found["restarted"] = sorted(restarted)
        venv.step(np.zeros((4, 2), np.float32))
        venv.close()
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
