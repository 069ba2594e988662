"""Run by tests: a cluster of two nodes on this machine, the second of which does not see the folder `hidden`.

Its arguments are a folder and what is to be tried. Prints what it has found as JSON, and ends all that it has started.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import gymnasium as gym
import ray
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from studies import rows_of, study_of

from lit_sb3_ray import RayVecEnv
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.metrics import METRICS, tell
from lit_sb3_ray.scale.ray_settings import RaySettings

CPUS = 2
SHIPPED = '''
import gymnasium as gym
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy

class Policy(ActorCriticPolicy):
    """The user's own."""

class Callback(BaseCallback):
    def _on_step(self):
        return True

class Env(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.count += 1
        return self.observation_space.sample(), 1.0, self.count >= 4, False, {}

gym.register(id="Shipped-v0", entry_point=Env)
'''


def start_blind(address, hidden):
    """Starts a node that has another folder at the same path; returns its process, which leads its group."""
    start = f"{sys.executable} -m ray.scripts.scripts start --address={address} --num-cpus={CPUS} --block"
    words = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none {hidden} && exec {start} --object-store-memory=80000000"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)


def wait_for(look, seconds=60):
    """Looks until there is something to see."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return seen


def on_each_node(function):
    """Calls a function on each node."""
    calls = []
    for node in ray.nodes():
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        calls.append(ray.remote(function).options(num_cpus=0, scheduling_strategy=there).remote())
    return ray.get(calls)


def look_at_what_is_shipped():
    """What a process of Ray can import, and a variable that it was given."""
    import shipped_envs

    return shipped_envs.Env.__name__, os.environ["SHIPPED"]


def refusal(act):
    """What an act is refused with."""
    try:
        act()
    except ConfigError as error:
        return str(error)
    return None


def shipping(folder, address):
    """Joins with modules that no node has, then studies with and without a folder that all nodes see."""
    os.environ["RAY_ADDRESS"] = address
    found = {"own": refusal(lambda: connect(RaySettings(num_cpus=1)))}
    modules = folder / "modules"
    modules.mkdir()
    (modules / "shipped_envs.py").write_text(SHIPPED)
    settings = RaySettings(py_modules=(str(modules / "shipped_envs.py"),), env_vars=(("SHIPPED", "yes"),))
    connect(settings)
    found["shipped"] = on_each_node(look_at_what_is_shipped)
    hidden, shared = folder / "hidden", folder / "shared"
    mine = {
        "env_id": "Shipped-v0",
        "gym_packages": ["shipped_envs"],
        "hyperparams": {"n_steps": 20, "policy": "shipped_envs.Policy", "callback": "shipped_envs.Callback"},
        "ray_settings": settings,
        "n_jobs": 2,
    }
    two = {"cpus_per_trial": float(CPUS), "checkpoint_every": 0.0}
    found["unshared"] = refusal(study_of(hidden, **mine, options=two).hyperparameters_optimization)
    found["left"] = [str(path.relative_to(hidden)) for path in hidden.rglob("*")]
    url = f"file://{shared}"
    manager = study_of(hidden, **mine, options={**two, "storage_path": url}, storage=str(folder / "study.log"), study_name="s")
    result = manager.hyperparameters_optimization()
    found["states"] = [row.state.name for row in rows_of(folder)]
    found["failures"] = [row.user_attrs.get("failure") for row in rows_of(folder)]
    found["folders"] = [row.user_attrs["folder"].startswith(f"{url}/s/trial_") for row in rows_of(folder)]
    found["copied"] = sorted(path.name for path in (shared / "s" / "study").iterdir())
    found["there"] = sorted(path.name for path in result.folder.iterdir())
    return found


def placement(folder, address):
    """Puts env actors on nodes, by themselves and in trials that leave no CPU free, and gives trials parts of a GPU."""
    connect(RaySettings(address=address))
    own = ray.get_runtime_context().get_node_id()
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    launching = logging.getLogger("lit_sb3_ray.vec.launch")
    launching.addHandler(handler)
    launching.setLevel(logging.INFO)
    found = {"nodes": {}, "lines": []}
    for strategy in (None, "strict-pack", "pack", "spread"):
        lines.clear()
        envs = [lambda: gym.make("CartPole-v1")] * 2
        env = RayVecEnv(envs, envs_per_actor=1, num_cpus_per_actor=1.0, placement=strategy)
        env.reset()
        env.close()
        homes = re.findall(r"environments \d to \d: process \d+ on node (\w{12}), [^,]+, reached by", "\n".join(lines))
        found["nodes"][str(strategy)] = [home == own[:12] for home in homes]
    launching.removeHandler(handler)
    # Two env actors for training and one for evaluation: with the learner they are all the CPUs that both nodes have.
    crowd = {"vec_env_type": "ray", "n_envs": 2, "envs_per_actor": 1, "env_cpus": 1.0, "n_jobs": None, "n_trials": 2}
    crowd |= {"storage": str(folder / "study.log"), "study_name": "s"}
    result = study_of(folder, **crowd).hyperparameters_optimization()
    found["crowded"] = [row.state.name for row in rows_of(folder)]
    output = (result.folder / "output" / "trial_00000" / "output.log").read_text()
    found["told"] = len(re.findall(r"environments \d to \d: process \d+ on node \w{12}, ", output))
    # What a trial sees of the one GPU, which is there in name only.
    found["gpus"] = {}
    for share in (0.0, 0.5):
        seen = {"env_id": "TinyTelling-v0", "device": "auto", "n_jobs": None, "options": {"gpus_per_trial": share}}
        seen |= {"storage": str(folder / "gpu.log"), "study_name": f"gpu {share}"}
        result = study_of(folder / "gpu", **seen).hyperparameters_optimization()
        found["gpus"][str(share)] = [bool(value >= 100.0) for value in result.table["value"]]
    for metric in METRICS:
        tell(metric, 1.0, **dict.fromkeys(metric.labels, "x"))
    here = next(node for node in ray.nodes() if node["NodeID"] == own)
    endpoint = f"http://{here['NodeManagerAddress']}:{here['MetricsExportPort']}/metrics"

    def exported():
        try:
            with urllib.request.urlopen(endpoint, timeout=5) as answer:
                names = set(re.findall(r"^(ray_lit_sb3_ray_\w+)\{[^}]*SessionName=", answer.read().decode(), re.MULTILINE))
        except OSError:  # Ray's agent serves it once it has something.
            return None
        return names if len(names) >= len(METRICS) else None

    found["exported"] = sorted(wait_for(exported))
    return found


def main(folder, what):
    """Tries it on a new cluster."""
    for name in ("hidden", "shared"):
        (folder / name).mkdir()
    head = {"num_cpus": CPUS, "num_gpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = start_blind(cluster.address, folder / "hidden")
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        wait_for(lambda: len([node for node in ray.nodes() if node["Alive"]]) == 2)
        ray.shutdown()
        found = {"shipping": shipping, "placement": placement}[what](folder, cluster.address)
    finally:
        ray.shutdown()
        second.terminate()
        try:
            second.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(second.pid, signal.SIGKILL)
        cluster.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
