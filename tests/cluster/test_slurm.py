"""cluster/slurm.sbatch on two hosts, with stand-ins for Slurm's own commands that reach the second host by ssh."""

import json
import re
from collections import Counter

import pytest
from cluster.gated_env import MARKS, OWN_NETWORK, write_env
from cluster.hosts import HOME, REPOSITORY, Network, wait
from cluster.rows import rows_of, saved

from lit_sb3_ray.tuning.storage import open_study

# One task on each node that is named, in the environment of the caller; a signal ends all of them.
SRUN = """#!/bin/bash
echo "$*" >> "$CALLS"
while [[ $1 == --* ]]; do
  case $1 in --nodelist=*) IFS=, read -ra names <<< "${1#*=}" ;; esac
  shift
done
own=
away=()
for name in "${names[@]}"; do
  if [ "$name" = "$(hostname)" ]; then
    "$@" &
    own=$!
  else
    command="$(export -p); echo \\$\\$ > /tmp/task; exec $(printf '%q ' "$@")"
    ssh -o StrictHostKeyChecking=no -i /tmp/home/.ssh/id_ed25519 "$name" "$command" < /dev/null &
    away+=("$name")
  fi
done
end_tasks() {
  for name in "${away[@]}"; do
    ssh -i /tmp/home/.ssh/id_ed25519 -o StrictHostKeyChecking=no "$name" "kill \\$(cat /tmp/task)"
  done
  [ -z "$own" ] || kill "$own"
}
trap end_tasks TERM
wait
wait
"""
SCONTROL = """#!/bin/bash
echo "scontrol $*" >> "$CALLS"
if [ "$1" = show ]; then printf '%s\\n' node1 node2; fi
"""
NAME = "queued"
# On Debian a host's own name stands for its loopback, unlike on the others.
LOOPBACK = """
sed "s/^[0-9.]* $(hostname)$/127.0.1.1 $(hostname)/" /etc/hosts > /tmp/hosts
mount --bind /tmp/hosts /etc/hosts
"""


@pytest.fixture
def nodes(tmp_path):
    network = Network(tmp_path)
    try:
        yield [network.add(name) for name in ("node1", "node2")]
    finally:
        network.close()


@pytest.mark.hosts
@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_a_study_whose_time_is_over_is_queued_again_and_comes_to_its_end(nodes, tmp_path):
    """The first time it is told to stop, as `--signal` has Slurm do it; the second time it goes on.

    Before the first time, the job has been queued again already, from before its study began; a point waits for it there.
    """
    first, second = nodes
    first.run("bash", "-c", LOOPBACK)
    commands, home = tmp_path / "bin", tmp_path / "shared_home"
    commands.mkdir()
    home.mkdir()
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    (tmp_path / "space.yml").write_text("learning_rate: {type: float, low: 1.0e-4, high: 1.0e-3}\n")
    calls, journal, gate = tmp_path / "calls.txt", str(tmp_path / "study.log"), tmp_path / "gate"
    write_env(tmp_path / "mine", gate)
    open_study(journal, NAME).enqueue_trial({"learning_rate": 5e-4})
    job = {
        "HOME": home,
        "PATH": f"{commands}:/usr/bin:/bin",
        "PYTHONPATH": f"{REPOSITORY}:{tmp_path / 'mine'}",
        "LIT_SB3_RAY_ENV": f"{HOME}/lit_sb3_ray_env",
        "CALLS": calls,
        "SLURM_JOB_ID": 4711,
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_CPUS_PER_TASK": 1,
    }
    settings = "--n-trials 4 --sampler random --pruner none --n-evaluations 4 --eval-episodes 1 --checkpoint-every 0 -n 8192"
    study = f"tune --algo ppo --env Mine-v0 --gym-packages my_envs --vec-env dummy --seed 1 {settings}".split()
    study += ["--conf-file", str(tmp_path / "mine/mine.yml"), "-params", OWN_NETWORK]
    study += ["--search-space", str(tmp_path / "space.yml"), "--study-name", NAME, "--storage", journal]
    study += ["--storage-path", str(tmp_path / "trials"), "--log-folder", str(tmp_path / "logs")]

    def submit(number, **more):
        words = [f"{key}={value}" for key, value in (job | more).items()]
        script = f'echo $$ > {tmp_path}/pid; exec bash cluster/slurm.sbatch "$@"'
        return first.start("env", *words, "bash", "-c", script, "slurm", *study, log=tmp_path / f"job{number}.txt")

    batch = submit(1, SLURM_RESTART_COUNT=1)
    # One trial on each node, both of them held after their first evaluation.
    wait(lambda: batch.poll() is not None or saved(journal, NAME) == [MARKS[0]] * 2, 150, "the first checkpoints")
    assert batch.poll() is None, (tmp_path / "job1.txt").read_text()
    (token,) = (home / ".ray").iterdir()
    assert token.stat().st_mode & 0o777 == 0o600 and len(token.read_text()) == 64
    first.run("kill", "-TERM", (tmp_path / "pid").read_text().strip())
    assert batch.wait(timeout=90) == 143, (tmp_path / "job1.txt").read_text()
    told = calls.read_text().splitlines()
    # What is left of the job ends when it is queued again.
    assert "rm -rf /tmp/ray_4711" in told[-2] and told[-1] == "scontrol requeue 4711"
    assert all("--overlap" in line for line in told if "ray start" in line)
    states = Counter(row.state.name for row in rows_of(journal, NAME))
    assert states["RUNNING"] == states["COMPLETE"] == 0
    wait(lambda: nothing_left(nodes, home), 30, "the end of all that was started")

    gate.touch()
    assert submit(2, SLURM_RESTART_COUNT=2).wait(timeout=200) == 0, (tmp_path / "job2.txt").read_text()
    complete = [row for row in rows_of(journal, NAME) if row.state.name == "COMPLETE"]
    assert [list(row.intermediate_values) for row in complete] == [MARKS] * 4
    results = [path.read_text().splitlines() for path in (tmp_path / "trials").rglob("result.json")]
    assert {json.loads(lines[-1])["node_ip"] for lines in results if lines} == {first.address, second.address}
    assert calls.read_text().count("scontrol requeue 4711") == 1
    wait(lambda: nothing_left(nodes, home), 30, "the end of all that was started")


def nothing_left(nodes, home):
    """Tells whether no process of Ray, no token and no folder of the job is left."""
    left = "".join(node.run("ps", "-eo", "args").stdout for node in nodes)
    folders = "".join(node.run("ls", "/tmp").stdout for node in nodes)
    return not re.search("gcs_server|raylet", left) and not list((home / ".ray").iterdir()) and "ray_4711" not in folders
