"""Run by a test: steps environments for ever in a process that starts a Ray of its own.

Usage: `python learner_process.py ENV_CLASS`. The first line that it prints has the processes of the actors and of the
environments' children, the second says that it is stepping.
"""

from __future__ import annotations

import signal
import sys
from functools import partial

import numpy as np
import ray
from vec import fault_envs

from lit_sb3_ray.vec.ray_vec_env import RayVecEnv


def main():
    """Steps until it is killed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    venv = RayVecEnv([partial(getattr(fault_envs, sys.argv[1]), index) for index in range(4)], envs_per_actor=2)
    children = venv.get_attr("child") if venv.has_attr("child") else []
    print(*sorted(set(venv.env_method("pid"))), *children, flush=True)
    venv.reset()
    for number in range(10**9):
        venv.step(np.zeros(4, np.int64))
        if number == 100:
            print("stepping", flush=True)


if __name__ == "__main__":
    main()
