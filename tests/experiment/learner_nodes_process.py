"""Run by a test: two learners on two nodes of a cluster on this machine, one of which is lost in a second run.

Prints what it has found as JSON. `RAY_TMPDIR` keeps the cluster's address from processes that look for one.
"""

from __future__ import annotations

import json
import sys

import ray
from ray.cluster_utils import Cluster
from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.errors import LearnerError
from lit_sb3_ray.experiment import learners
from lit_sb3_ray.lit.meeting import Meeting

SMALL = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "policy_kwargs": {"net_arch": [8]}, "n_envs": 2, "normalize": True}
MET = []


def noted(rank, size, host, *others):
    """Where a learner meets the others."""
    MET.append((rank, host))
    return Meeting(rank, size, host, *others)


class At(BaseCallback):
    """Does something at an env step."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action = step, action

    def _on_step(self):
        if self.num_timesteps == self.step:
            self.action()
        return True


def train(folder, steps, callbacks=()):
    """Trains; the env steps done, or why a learner is lost."""
    given = {"n_timesteps": steps, "eval_freq": -1, "save_freq": 64, "verbose": 0, "device": "cpu", "vec_env_type": "dummy"}
    made = ExperimentManager(
        None, "ppo", "CartPole-v1", folder, hyperparams=SMALL, devices=2, seed=1, callbacks=callbacks, **given
    )
    model = made.setup_experiment()
    try:
        made.learn(model)
    except LearnerError as error:
        return str(error)
    return model.num_timesteps


def main(folder):
    """The first learner's node has no processor for another one."""
    learners.Meeting = noted
    store = {"object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, connect=True, head_node_args={**store, "num_cpus": 0, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1, **store)
        cluster.wait_for_nodes()
        whole = train(folder, 256)
        lost = train(folder, 100_000, [At(200, lambda: cluster.remove_node(second, allow_graceful=False))])
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(json.dumps({"met": MET, "steps": whole, "lost": lost}))


if __name__ == "__main__":
    main(sys.argv[1])
