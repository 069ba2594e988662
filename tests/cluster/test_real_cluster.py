"""A cluster of two hosts on this machine, started by `ray up` from cluster/on-prem.yaml and used from a third.

The tests go through a cluster's life in their order: it is started once, since that takes longest. The second of them needs a
host that dies, and the last one ends the cluster.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from cluster.gated_env import MARKS, OWN_NETWORK, write_env
from cluster.hosts import HOME, REPOSITORY, Network, wait
from cluster.rows import rows_of, saved

pytestmark = [pytest.mark.hosts, pytest.mark.heavy, pytest.mark.timeout(400)]

RAY = f"{HOME}/lit_sb3_ray_env/bin/ray"
PYTHON = f"{HOME}/lit_sb3_ray_env/bin/python"
SPACE = {"learning_rate": {"type": "float", "low": 1e-4, "high": 1e-3, "log": True}}
MINE = {"env": "Mine-v0", "gym_packages": "my_envs"}
# What Ray waits for by itself: seconds between two looks at the nodes that should be there, and until one counts as dead.
IMPATIENT = (
    "export AUTOSCALER_UPDATE_INTERVAL_S=1 RAY_health_check_period_ms=500 RAY_health_check_timeout_ms=1000"
    " RAY_health_check_failure_threshold=4; "
)
SMALL = {
    "--algo": "ppo",
    "--env": "CartPole-v1",
    "--n-trials": 2,
    "--sampler": "random",
    "--pruner": "none",
    "--n-evaluations": 4,
    "--eval-episodes": 1,
    "--cpus-per-trial": 2,  # As many as a host has: one trial on each.
    "--checkpoint-every": 0,
    "--vec-env": "dummy",
    "--seed": 1,
    "--log-folder": f"{HOME}/logs",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Three hosts: the machine of whoever uses the cluster, a head, a worker; and a folder that all of them share."""
    network = Network(tmp_path_factory.mktemp("site"))
    try:
        yield Site(network)
    finally:
        network.close()


class Site:
    """The hosts, and the file of the cluster on two of them."""

    def __init__(self, network):
        self.laptop, self.head, self.worker = (network.add(name) for name in ("laptop", "head", "worker"))
        self.shared = network.base / "shared"
        self.shared.mkdir()
        config = yaml.safe_load((REPOSITORY / "cluster/on-prem.yaml").read_text())
        config["provider"] = {"type": "local", "head_ip": self.head.address, "worker_ips": [self.worker.address]}
        config["auth"] = {"ssh_user": "root"}
        config["head_start_ray_commands"] = [IMPATIENT + command for command in config["head_start_ray_commands"]]
        self.file = network.base / "cluster.yaml"
        self.file.write_text(yaml.safe_dump(config))
        (self.shared / "space.yml").write_text(yaml.safe_dump(SPACE))
        self.gate = self.shared / "gate"
        write_env(self.shared / "mine", self.gate)

    def nodes(self):
        """Lists the addresses of the nodes that Ray has."""
        told = self.head.run("bash", "-ic", "ray list nodes --format json --filter state=ALIVE", check=False).stdout
        found = re.search(r"^\[\s*\{.*\}\s*\]$", told, re.M | re.S)
        return {node["node_ip"] for node in json.loads(found.group())} if found else set()

    def study(self, name, **flags):
        """Returns a small study's command line."""
        given = {**SMALL, "--search-space": self.shared / "space.yml", "--study-name": name, "--storage": self.journal(name)}
        given["--storage-path"] = self.shared / "trials"
        given |= {f"--{key.replace('_', '-')}": value for key, value in flags.items()}
        return ["tune", *(str(word) for pair in given.items() for word in pair)]

    def journal(self, name):
        return str(self.shared / f"{name}.log")

    def rows(self, name):
        return rows_of(self.journal(name), name)


@pytest.fixture(scope="module")
def cluster(site):
    """The cluster, with both of its nodes."""
    site.laptop.run(RAY, "get-auth-token", "--generate")
    site.laptop.run(RAY, "up", "--yes", site.file, timeout=200)
    # Asking Ray takes seconds each time; whether there is anything to ask about is seen at once.
    wait(lambda: site.worker.run("pgrep", "-x", "raylet", check=False).returncode == 0, 120, "Ray on the second node")
    wait(lambda: site.nodes() == {site.head.address, site.worker.address}, 60, "the second node")
    return site


def test_two_studies_share_the_nodes_through_ray_submit(cluster, tmp_path):
    """Each trial takes a whole node, so that the second study gets nodes as the first one leaves them.

    The second one has an env, a policy, an extractor and a callback of its own, which `--py-modules` brings to the nodes.
    """
    submit = [PYTHON, "cluster/submit.py", cluster.file]
    own = {**MINE, "conf_file": cluster.shared / "mine/mine.yml", "py_modules": cluster.shared / "mine/my_envs.py"}
    # The third one gives a folder that only the head has.
    flags = {"first": {}, "second": own, "refused": {"storage_path": f"{HOME}/trials"}}
    begun = {}
    for name, given in flags.items():
        network = OWN_NETWORK if given is own else "policy_kwargs:dict(net_arch=[8, 8])"
        command = [*submit, *cluster.study(name, n_timesteps=1024, **given), "-params", network]
        begun[name] = cluster.laptop.start(*command, log=tmp_path / name)
    assert begun.pop("refused").wait(timeout=150) != 0, (tmp_path / "refused").read_text()
    refused = (tmp_path / "refused").read_text()
    assert "--storage-path" in refused and "worker" in refused
    for name, study in begun.items():
        assert study.wait(timeout=150) == 0, (tmp_path / name).read_text()
        assert "Best trial:" in (tmp_path / name).read_text()
        assert [row.state.name for row in cluster.rows(name)] == ["COMPLETE", "COMPLETE"]
    assert list(cluster.shared.glob("called_on_*"))
    results = [path.read_text().splitlines() for path in (cluster.shared / "trials").rglob("result.json")]
    assert {json.loads(lines[-1])["node_ip"] for lines in results} == {cluster.head.address, cluster.worker.address}


def test_nodes_have_what_the_file_says(cluster):
    """And nothing that `ray up` has set for its own commands."""
    for host in (cluster.head, cluster.worker):
        told = host.run("bash", "-c", "tr '\\0' '\\n' < /proc/$(pgrep -x raylet)/environ").stdout
        variables = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
        assert variables["RAY_AUTH_MODE"] == "token" and variables["RAY_USAGE_STATS_ENABLED"] == "0"
        assert not {"OMP_NUM_THREADS", "PYTHONWARNINGS"} & set(variables)


def test_who_has_no_token_is_turned_away(cluster, tmp_path):
    join = [RAY, "start", f"--address={cluster.head.address}:6379"]
    drive = [PYTHON, "-c", f"import ray; ray.init('{cluster.head.address}:6379')"]
    none, wrong = ["RAY_AUTH_MODE=disabled"], ["RAY_AUTH_MODE=token", f"RAY_AUTH_TOKEN={'0' * 64}"]
    logs = [tmp_path / str(number) for number in range(4)]
    # Ray would ask twenty times, once a second.
    words = [["env", "RAY_NUM_REDIS_GET_RETRIES=1", *given, *command] for command in (join, drive) for given in (none, wrong)]
    tries = [cluster.laptop.start(*one, log=log) for one, log in zip(words, logs, strict=True)]
    for process, log in zip(tries, logs, strict=True):
        assert process.wait(timeout=120) != 0, log.read_text()
        assert re.search("authenticat|Failed to connect", log.read_text(), re.I), log.read_text()
    assert cluster.nodes() == {cluster.head.address, cluster.worker.address}
    # The dashboard is not there for others, whatever they have.
    for port, open_ in ((22, True), (8265, False)):
        reached = cluster.laptop.run("bash", "-c", f": < /dev/tcp/{cluster.head.address}/{port}", check=False)
        assert (reached.returncode == 0) == open_


def test_a_job_is_followed_stopped_and_goes_on_though_a_node_dies(cluster, tmp_path):
    """Every trial is there in the end, once, with each of its evaluations."""
    laptop, name = cluster.laptop, "job"
    job = ["env", "RAY_AUTH_MODE=token", RAY, "job"]
    where = ["--address", "http://localhost:8265"]
    forward = ["ssh", "-N", "-L", "8265:localhost:8265", "-o", "StrictHostKeyChecking=no", "head"]
    tunnel = laptop.start(*forward, log=tmp_path / "ssh.log")
    wait(lambda: laptop.run("bash", "-c", ": < /dev/tcp/localhost/8265", check=False).returncode == 0, 20, "the tunnel")
    refused = laptop.run("env", "RAY_AUTH_MODE=disabled", RAY, "job", "list", *where, check=False)
    assert refused.returncode and "Unauthorized" in refused.stdout

    command = ["python", "-m", "lit_sb3_ray", *cluster.study(name, n_timesteps=8192, n_trials=4, conf_file="mine.yml", **MINE)]
    command += ["-params", OWN_NETWORK]
    # A folder of the user's machine alone.
    laptop.run("cp", "-r", cluster.shared / "mine", f"{HOME}/mine")
    ship = [*where, "--working-dir", f"{HOME}/mine"]
    laptop.run(*job, "submit", *ship, "--no-wait", "--submission-id", "one", "--", *command)
    followed = laptop.start(*job, "logs", *where, "--follow", "one", log=tmp_path / "one.log")
    journal = cluster.journal(name)
    # One trial on each node, both of them held after their first evaluation.
    wait(lambda: saved(journal, name) == [MARKS[0]] * 2, 120, "the first checkpoints")
    laptop.run(*job, "stop", *where, "one")
    followed.wait(timeout=30)
    assert "tune --resume" in (tmp_path / "one.log").read_text()
    states = Counter(row.state.name for row in cluster.rows(name))
    assert states["RUNNING"] == states["COMPLETE"] == 0

    command = [*job, "submit", *ship, "--submission-id", "two", "--", *command, "--resume"]
    again = laptop.start(*command, log=tmp_path / "two.log")
    wait(lambda: saved(journal, name)[2:] == [MARKS[1]] * 2, 120, "the next checkpoints")
    cluster.worker.kill()
    cluster.gate.touch()
    assert again.wait(timeout=280) == 0, (tmp_path / "two.log").read_text()
    told = (tmp_path / "two.log").read_text()
    assert "succeeded" in told
    # One trial is lost. It may be told more than once: its next process may be put on the dead node before Ray knows of it.
    assert len(set(re.findall(r"Trial (\d+): .*; it goes on from its last checkpoint", told))) == 1
    complete = [row for row in cluster.rows(name) if row.state.name == "COMPLETE"]
    assert [list(row.intermediate_values) for row in complete] == [MARKS] * 4
    assert len({str(row.params) for row in complete}) == 4
    tunnel.terminate()
    tunnel.wait(timeout=10)


def test_ray_down_ends_the_cluster(cluster):
    cluster.laptop.run(RAY, "down", "--yes", cluster.file)
    left = cluster.head.run("ps", "-eo", "args").stdout
    assert not [line for line in left.splitlines() if re.search("gcs_server|raylet|dashboard|monitor.py", line)]
    assert Path(cluster.journal("first")).is_file()
