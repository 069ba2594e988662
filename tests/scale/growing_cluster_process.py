"""Run by a test in a folder of its own: a cluster of one node whose autoscaler may start another, and what is said of it.

Its argument is the autoscaler's generation. `v1` is a real autoscaler with Ray's provider of nodes for tests, which does not
work with `v2` as Ray is packaged: there, the node only tells its type, as nodes that an autoscaler has started do.
Prints what it has found as JSON, and ends all that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import ray

from lit_sb3_ray.scale.autoscaling import may_grow
from lit_sb3_ray.scale.resources import Request, cpu_supply, grant

HEAD = "f" * 51 + "00000"  # the id that Ray's provider of nodes for tests expects of the head
LISTS = ("initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands")
NODES = {
    "ray.head.default": {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0},
    "worker": {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 1},
}


def configuration():
    """Makes the autoscaler's configuration; its nodes are processes of this machine."""
    return {
        "cluster_name": "growing",
        "max_workers": 1,
        "provider": {
            "type": "fake_multinode",
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "available_node_types": NODES,
        "head_node_type": "ray.head.default",
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 5,
        "file_mounts_sync_continuously": False,
        **{name: {} for name in ("auth", "docker", "file_mounts")},
        **{name: [] for name in (*LISTS, "head_start_ray_commands", "worker_start_ray_commands")},
        **{name: [] for name in ("cluster_synced_files", "rsync_exclude", "rsync_filter")},
    }


def start(folder, generation):
    """Starts the head; returns its process."""
    words = ["start", "--head", "--block", "--num-cpus=1", "--port=0", "--include-dashboard=false"]
    words += ["--object-store-memory=80000000", f"--temp-dir={folder}/t"]
    if generation == "v1":
        path = folder / "autoscaling.json"
        path.write_text(json.dumps(configuration()))
        words.append(f"--autoscaling-config={path}")
        environment = {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD}
    else:
        environment = {"RAY_enable_autoscaler_v2": "1", "RAY_NODE_TYPE_NAME": "workergroup"}
    return subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", *words],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for(look, seconds=90):
    """Looks until there is something to see."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return seen


def end(folder):
    """Ends the processes that have this folder in their command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"{folder}/" in (entry / "cmdline").read_text():
                    os.kill(int(entry.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue


def main():
    """Asks for more than the head has."""
    folder = Path.cwd()
    head = start(folder, sys.argv[1])
    current = folder / "t" / "ray_current_cluster"
    try:
        address = wait_for(lambda: current.exists() and current.read_text())
        ray.init(address=address, log_to_driver=False)
        grows = wait_for(may_grow)
        [cpus] = grant([Request("env actors", 2, 1.0)], cpu_supply(), "ask for fewer")
        print(json.dumps({"grows": grows, "has": ray.cluster_resources()["CPU"], "granted": cpus}))
    finally:
        ray.shutdown()
        end(folder)
        head.wait()


if __name__ == "__main__":
    main()
