"""A benchmark on a real Ray: every run is played or says why not, and the next start goes on where it stopped."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import ray
from hostile import hostile_pickle, rewrite_model
from made_runs import copy, train

from lit_sb3_ray.benchmarking.benchmark import FETCH, Benchmark, failed, run_benchmark
from lit_sb3_ray.benchmarking.published import Published
from lit_sb3_ray.benchmarking.results import read_score, result_file
from lit_sb3_ray.benchmarking.runs import find_runs
from lit_sb3_ray.benchmarking.scoring import Rules, Score
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.origin import Origin, write_origin

RULES = Rules(n_timesteps=60)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Runs of every kind: two that can be played, and others that cannot."""
    logs = tmp_path_factory.mktemp("runs") / "logs"
    cartpole = train(logs, "--env", "CartPole-v1")
    count = train(logs, "--env", "TinyCount-v0", "-params", "normalize:True")
    copy(count, "TinyFailing-v0", env_kwargs={"at": 9, "what": "kill"})
    copy(count, "TinyFailing-v0", 2, env_kwargs={"at": 9})
    copy(cartpole, "PandaReach-v3")
    copy(cartpole, "FetchReach-v4")
    damaged = copy(count, "TinyCount-v0", 2)
    model = (damaged / "TinyCount-v0.zip").read_bytes()
    (damaged / "TinyCount-v0.zip").write_bytes(model[: len(model) // 2])
    (copy(count, "TinyCount-v0", 3) / "TinyCount-v0.zip").unlink()
    (copy(count, "TinyCount-v0", 4) / "TinyCount-v0" / "args.yml").write_text("[not: {what: it was")
    hostile = copy(cartpole, "CartPole-v1", 2, gym_packages=[])
    rewrite_model(cartpole / "CartPole-v1.zip", hostile / "CartPole-v1.zip", policy_kwargs=hostile_pickle(logs / "run"))
    write_origin(hostile / "CartPole-v1", Origin("maker/ppo-CartPole-v1", "0" * 40, trusted=False))
    (logs / "ppo" / "notes").mkdir()
    (logs / "readme.txt").write_text("no run")
    return logs


@pytest.fixture(scope="module")
def played(ray_instance, logs, tmp_path_factory):
    told = []
    folder = tmp_path_factory.mktemp("played") / "b"
    benchmark = Benchmark(logs, folder, RULES, (Published("ppo", "CartPole-v1", 500.0),))
    return benchmark, run_benchmark(benchmark, lambda *event: told.append(event)), told


def row_of(result, name):
    (row,) = [row for row in result.rows if row.run.path.name == name]
    return row


@pytest.mark.slow
def test_every_run_is_a_row(played):
    _, result, told = played
    names = [row.run.path.name for row in result.rows]
    assert names == [
        "CartPole-v1_1",
        "CartPole-v1_2",
        "FetchReach-v4_1",
        "PandaReach-v3_1",
        *(f"TinyCount-v0_{number}" for number in (1, 2, 3, 4)),
        *(f"TinyFailing-v0_{number}" for number in (1, 2)),
    ]
    # Five steps pay 1 + 2 + 3 + 4 + 5, and twelve such episodes end in sixty steps.
    score = row_of(result, "TinyCount-v0_1").score
    assert (score.mean_reward, score.std_reward, score.eval_episodes, score.eval_timesteps) == (15.0, 0.0, 12, 60)
    assert score.n_timesteps == 64
    assert row_of(result, "CartPole-v1_1").published.mean_reward == 500.0
    assert sorted(done for _, done, _ in told) == list(range(1, len(told) + 1))
    assert {total for _, _, total in told} == {len(told)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("CartPole-v1_2", "system"),
        ("FetchReach-v4_1", FETCH),
        ("PandaReach-v3_1", "pip install 'lit-sb3-ray[panda]'"),
        ("TinyCount-v0_2", "TinyCount-v0.zip"),
        ("TinyCount-v0_3", "no TinyCount-v0.zip in"),
        ("TinyCount-v0_4", "args.yml"),
        ("TinyFailing-v0_1", "its process was lost"),
        ("TinyFailing-v0_2", "ValueError: out of order"),
    ],
)
def test_a_run_that_cannot_be_played_says_why(played, name, reason):
    benchmark, result, _ = played
    row = row_of(result, name)
    assert row.score is None
    assert reason in row.problem
    assert len(row.problem.splitlines()) == 1
    assert not (benchmark.log_dir / "run").exists()
    assert (row in failed(result.rows)) is (reason != FETCH)
    (line,) = [line for line in result.markdown.read_text().splitlines() if f" {name} " in line]
    assert " ".join(row.problem.split()).replace("|", "\\|") in line
    if name == "TinyFailing-v0_2":
        log = benchmark.folder / "output" / "ppo" / f"{name}.log"
        assert str(log) in row.problem
        assert "Traceback" in log.read_text()


@pytest.mark.slow
def test_the_next_start_plays_what_has_no_result(played):
    benchmark, first, _ = played
    told = []
    wanted = replace(benchmark, env_ids=("TinyCount-v0",))
    again = run_benchmark(wanted, lambda row, *_: told.append(row.run.path.name))
    assert [row.score for row in again.rows] == [row_of(first, row.run.path.name).score for row in again.rows]
    # One is damaged and tried again; of the others that have no result, it is known beforehand that they cannot be played.
    assert told == ["TinyCount-v0_2"]


@pytest.mark.slow
def test_a_result_is_of_the_model_and_the_rules_that_it_was_played_with(played, logs, tmp_path):
    benchmark, _, _ = played
    run = next(run for run in find_runs(logs) if run.path.name == "TinyCount-v0_1")
    file = result_file(benchmark.folder, run, RULES)
    assert json.loads(file.read_text())["score"]["mean_reward"] == 15.0
    others = [replace(RULES, **change) for change in ({"seed": 1}, {"n_timesteps": 61}, {"n_envs": 2})]
    assert len({file, *(result_file(benchmark.folder, run, rules) for rules in others)}) == 4
    statistics = run.path / "TinyCount-v0" / "vecnormalize.pkl"
    content = statistics.read_bytes()
    try:
        statistics.write_bytes(content + b"\0")
        assert result_file(benchmark.folder, run, RULES) != file
    finally:
        statistics.write_bytes(content)
    assert result_file(benchmark.folder, run, RULES) == file
    # A damaged result is made again.
    file.write_text('{"score": {"mean')
    told = []
    wanted = replace(benchmark, env_ids=("TinyCount-v0",), only_first=True)
    result = run_benchmark(wanted, lambda row, *_: told.append(row.score.mean_reward))
    assert told == [15.0]
    assert [row.run.path.name for row in result.rows] == ["TinyCount-v0_1"]
    assert json.loads(file.read_text())["score"]["eval_episodes"] == 12


@pytest.mark.slow
def test_a_score_is_what_enjoy_logs(ray_instance, logs, tmp_path, capsys):
    words = ["--env", "CartPole-v1", "-n", "300", "--n-envs", "2", "--seed", "4"]
    folder = str(tmp_path / "b")
    assert cli.main(["benchmark", "--log-dir", str(logs), "--benchmark-dir", folder, "--test-mode", *words]) == 0
    capsys.readouterr()
    reading = ["-f", str(logs), "--exp-id", "1", "--no-render", "--reward-log", str(tmp_path / "m")]
    assert cli.main(["enjoy", *reading, *words]) == 0
    returns = []
    for file in (tmp_path / "m").glob("*.monitor.csv"):
        returns += [float(line.split(",")[0]) for line in file.read_text().splitlines()[2:]]
    with (tmp_path / "b" / "benchmark.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert int(row["eval_episodes"]) == len(returns) > 4
    assert float(row["mean_reward"]) == pytest.approx(np.mean(returns), rel=1e-12)
    assert float(row["std_reward"]) == pytest.approx(np.std(returns), rel=1e-9)
    assert row["published_mean_reward"] == "500.0"


ENJOY = "from rl_zoo3.enjoy import enjoy\nenjoy()\n"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_of_rl_zoo3_has_the_figures_of_its_own_benchmark(ray_instance, tmp_path):
    """rl_zoo3's benchmark runs an `enjoy.py` in the working directory, which its package does not have."""
    params = ["n_steps:32", "n_envs:2", "normalize:True"]
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    (tmp_path / "enjoy.py").write_text(ENJOY)

    def peer(module, *words):
        done = subprocess.run(
            [sys.executable, "-m", module, *words], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=180
        )
        assert done.returncode == 0, done.stderr[-2000:]

    training = ["--eval-freq", "-1", "--device", "cpu", "--num-threads", "1", "--seed", "1", "-n", "200"]
    peer("rl_zoo3.train", "--algo", "ppo", "--env", "Pendulum-v1", "-f", "logs", *training, "-params", *params)
    words = ["--log-dir", "logs", "-n", "1000", "--no-hub", "--test-mode", "--num-threads", "1"]
    peer("rl_zoo3.benchmark", *words, "--benchmark-dir", "theirs")
    assert (
        cli.main(["benchmark", *words[2:], "--log-dir", str(tmp_path / "logs"), "--benchmark-dir", str(tmp_path / "ours")])
        == 0
    )
    tables = []
    for side in ("theirs", "ours"):
        lines = [line for line in (tmp_path / side / "benchmark.md").read_text().splitlines() if line.startswith("|")]
        tables.append([[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], lines[2])])
    theirs, ours = tables
    assert theirs[0] == ours[0][:7]
    assert theirs[1][:2] == ours[1][:2] == ["ppo", "Pendulum-v1"]
    for column in range(2, 7):
        if column != 4:
            assert float(theirs[1][column]) == float(ours[1][column]), theirs[0][column]
    # Theirs is of the file; ours is what the model has been trained for.
    assert ours[1][4] == "256"


def start(folder, logs, *words):
    command = [sys.executable, "-m", "lit_sb3_ray", "benchmark", "--log-dir", str(logs), "--benchmark-dir", "b", *words]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    address = ray.get_runtime_context().gcs_address
    environment = {**os.environ, "PYTHONPATH": path, "RAY_ADDRESS": address}
    with (folder / "driver.txt").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_what_is_played_when_a_signal_comes_is_kept(signum, code, ray_instance, tmp_path):
    logs = tmp_path / "logs"
    slow = train(logs, "--env", "Slow-v0", "--gym-packages", "slow_envs")
    copy(slow, "Slow-v0", 2, env_kwargs={"seconds": 60.0})
    driver = start(tmp_path, logs, "-n", "20", "--n-jobs", "1")
    results = tmp_path / "b" / "results" / "ppo"
    deadline = time.monotonic() + 90
    while not list(results.glob("*.json")):
        assert driver.poll() is None, (tmp_path / "driver.txt").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    begun = time.monotonic()
    driver.send_signal(signum)
    assert driver.wait(60) == code, (tmp_path / "driver.txt").read_text()
    assert time.monotonic() - begun < 15
    if signum != signal.SIGKILL:
        table = (tmp_path / "b" / "benchmark.md").read_text()
        assert "15.000" in table
        assert "not played yet" in table
    (slow.parent / "Slow-v0_2" / "Slow-v0" / "args.yml").write_bytes((slow / "Slow-v0" / "args.yml").read_bytes())
    driver = start(tmp_path, logs, "-n", "20")
    assert driver.wait(90) == 0
    assert len(list(results.glob("*.json"))) == 2
    said = (tmp_path / "driver.txt").read_text()
    assert said.count("ppo Slow-v0_1: 15.00") == 1
    assert "[1/1] ppo Slow-v0_2: 15.00 +/- 0.00 (4 episodes)" in said
    assert [path.name for path in (tmp_path / "b").rglob(".*")] == []


def test_a_run_cannot_say_where_its_result_goes(logs, tmp_path):
    (run,) = [run for run in find_runs(logs) if run.path.name == "TinyCount-v0_1"]
    odd = replace(run, algo="../../../elsewhere")
    assert result_file(tmp_path / "b", odd, RULES).parent == tmp_path / "b" / "results" / "ppo"


def test_a_result_of_something_else_than_numbers_is_none(logs, tmp_path):
    file = tmp_path / "r.json"
    good = {"mean_reward": 1, "std_reward": 0.5, "n_timesteps": 4, "eval_timesteps": 5, "eval_episodes": 6}
    for change in ({"n_timesteps": "4"}, {"eval_episodes": None}, {"mean_reward": "high"}, {"more": 1}):
        file.write_text(json.dumps({"score": good | change}))
        assert read_score(file) is None
    file.write_text(json.dumps({"score": good}))
    assert read_score(file) == Score(1.0, 0.5, 4, 5, 6)


@pytest.mark.parametrize("name", ["benchmark.md", "benchmark.csv"])
def test_a_table_that_cannot_be_written_is_told_before_anything_is_played(logs, tmp_path, name):
    (tmp_path / "b" / name).mkdir(parents=True)
    told = []
    with pytest.raises(ConfigError, match=r"--benchmark-dir '.*b' cannot be written"):
        run_benchmark(Benchmark(logs, tmp_path / "b", RULES), lambda *event: told.append(event))
    assert told == []


def test_more_cpus_than_any_node_has_are_refused(ray_instance, logs, tmp_path):
    with pytest.raises(ConfigError, match="num-threads"):
        run_benchmark(Benchmark(logs, tmp_path / "b", RULES, num_threads=1000))
