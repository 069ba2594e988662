"""Sweeps on a real Ray: what they leave, what fails, what is killed, what is gone on with."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import ray
import yaml

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.load import load_run
from lit_sb3_ray.experiment.manager import ExperimentManager
from lit_sb3_ray.statistics import summarize
from lit_sb3_ray.tuning.sweeps.combination import Combination, read_result
from lit_sb3_ray.tuning.sweeps.dispatch import Observer
from lit_sb3_ray.tuning.sweeps.preflight import BadCombinationsError
from lit_sb3_ray.tuning.sweeps.retraining import fresh_seeds, retrain
from lit_sb3_ray.tuning.sweeps.sweep import Sweep, run_sweep
from lit_sb3_ray.tuning.sweeps.sweep_record import extend

TINY = {
    "args": None,
    "n_timesteps": 128,
    "eval_freq": 64,
    "n_eval_episodes": 2,
    "device": "cpu",
    "verbose": 0,
    "hyperparams": {"n_steps": 32, "n_envs": 1, "policy_kwargs": {"net_arch": [4]}, "normalize": False},
    "gym_packages": ["tiny_envs", "slow_envs"],
}


class Told(Observer):
    """Keeps what it is told; `at` is called with every progress."""

    def __init__(self, at=None):
        self.lines = []
        self.at = at

    def tell(self, line):
        self.lines.append(line)

    def show(self, progress):
        if self.at is not None:
            self.at(progress)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def swept(ray_instance, tmp_path_factory):
    """Two environments with two seeds: one that an agent can train in, and one whose rewards are NaN."""
    sweep = Sweep(tmp_path_factory.mktemp("sweep") / "s", ("ppo",), ("CartPole-v1", "TinyBroken-v0"), (7, 3), TINY)
    told = Told()
    return sweep, run_sweep(sweep, observer=told), told


@pytest.mark.slow
def test_every_combination_is_a_run_of_its_own(swept):
    sweep, result, _ = swept
    states = {(row.combination.env_id, row.combination.seed): row.state for row in result.rows}
    assert states == {
        (env, seed): state for env, state in (("CartPole-v1", "done"), ("TinyBroken-v0", "failed")) for seed in (7, 3)
    }
    for row in result.rows[:2]:
        run = row.combination.run(sweep.folder)
        assert row.num_timesteps == 128
        saved = yaml.safe_load((run.settings / "args.yml").read_text())
        assert (saved["seed"], saved["algo"], saved["env"]) == (row.combination.seed, "ppo", "CartPole-v1")
        model, env = load_run(run.path)
        assert model.num_timesteps == 128
        env.close()
    assert [row.combination.run(sweep.folder).path.name for row in result.rows[:2]] == ["CartPole-v1_1", "CartPole-v1_2"]
    provenance = yaml.safe_load((result.rows[0].combination.run(sweep.folder).path / "provenance.yml").read_text())
    assert provenance["argv"] == sys.argv


@pytest.mark.slow
def test_a_run_of_a_sweep_is_the_run_that_train_would_make(swept, tmp_path):
    _, result, _ = swept
    row = result.rows[0]
    manager = ExperimentManager(**TINY, algo="ppo", env_id="CartPole-v1", log_folder=str(tmp_path), seed=row.combination.seed)
    model = manager.setup_experiment()
    manager.learn(model)
    assert manager.final_evaluation() == (row.result.mean_reward, row.result.std_reward)


@pytest.mark.slow
def test_a_run_that_fails_is_reported_and_ends_nothing_else(swept):
    sweep, result, told = swept
    assert [row.combination.env_id for row in result.failed] == ["TinyBroken-v0"] * 2
    for row in result.failed:
        assert "NonFiniteError" in row.failure
        output = row.combination.output(sweep.folder)
        assert "Traceback" in output.read_text()
        assert any(str(row.combination) in line and row.failure in line and str(output) in line for line in told.lines)
    assert "Traceback" not in result.rows[0].combination.output(sweep.folder).read_text()


@pytest.mark.slow
def test_the_reports(swept):
    sweep, result, _ = swept
    table = rows_of(sweep.folder / "sweep.csv")
    assert [row["state"] for row in table] == ["done", "done", "failed", "failed"]
    assert (sweep.folder / table[0]["run"] / "CartPole-v1.zip").is_file()
    returns = [float(row["mean_reward"]) for row in table[:2]]
    summary = summarize([returns])
    cartpole, broken = rows_of(sweep.folder / "summary.csv")
    assert float(cartpole["iqm"]) == summary.iqm.value
    assert (cartpole["done"], cartpole["iqm_low"], cartpole["failed"]) == ("2", "", "0")
    assert (broken["done"], broken["runs"], broken["failed"], broken["mean"]) == ("0", "2", "2", "")
    assert f"| ppo | CartPole-v1 | 2 | {summary.mean} |" in (sweep.folder / "summary.md").read_text()
    assert "0 of 2, 2 failed" in (sweep.folder / "summary.md").read_text()
    curve = rows_of(sweep.folder / "curves.csv")
    assert [row["timesteps"] for row in curve] == ["64", "128"]
    means = [np.load(row.combination.run(sweep.folder).evaluations)["results"][0].mean() for row in result.rows[:2]]
    assert float(curve[0]["mean"]) == pytest.approx(np.mean(means))


@pytest.mark.slow
def test_finished_runs_are_not_run_again_and_more_can_be_asked_for(swept):
    sweep, before, _ = swept
    with pytest.raises(ConfigError, match="there is a sweep in"):
        run_sweep(sweep)
    other = {**TINY, "n_timesteps": 256}
    with pytest.raises(ConfigError, match=r"n_timesteps: the sweep in .* has 128, not 256"):
        run_sweep(Sweep(sweep.folder, sweep.algos, sweep.envs, sweep.seeds, other), resume=True)
    told = Told()
    more = Sweep(sweep.folder, ("ppo",), ("CartPole-v1",), (3, 0), TINY)
    result = run_sweep(more, resume=True, observer=told)
    assert [line.split(":")[0] for line in told.lines] == ["ppo on CartPole-v1, seed 0"]
    assert [row.result for row in result.rows[:2]] == [row.result for row in before.rows[:2]]
    assert result.lines[0].summary.count == 3
    assert result.lines[0].summary.iqm.interval is not None
    assert result.rows[2].combination == Combination("ppo", "CartPole-v1", 0, 3)


def slow_sweep(folder, seconds, **options):
    settings = {**TINY, "n_timesteps": 160, "save_freq": 32, "eval_freq": 0, "env_kwargs": {"seconds": seconds}}
    return Sweep(folder, ("ppo",), ("Slow-v0",), (5,), settings, **options)


def killing(times):
    """Kills a run's process, so often, when it is past its first checkpoint (each time another process)."""
    killed = []

    def at(progress):
        for _, report in progress.running:
            if report is not None and (report.num_timesteps or 0) > 40 and len(killed) < times and report.pid not in killed:
                os.kill(report.pid, signal.SIGKILL)
                killed.append(report.pid)

    return at


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_checkpoint(ray_instance, tmp_path):
    kill, seen = killing(1), set()

    def at(progress):
        kill(progress)
        if any("started again" in line for line in told.lines):
            seen.update(report.pid for _, report in progress.running if report is not None)

    told = Told(at)
    result = run_sweep(slow_sweep(tmp_path / "s", 0.04), observer=told)
    (row,) = result.rows
    assert (row.state, row.num_timesteps, row.restarts) == ("done", 160, 1)
    # What the killed process has said last is not shown for the new one, which is only starting.
    assert len(seen) == 1
    assert any("started again from its last checkpoint (1 of 3)" in line for line in told.lines)
    assert "Going on from checkpoint" in row.combination.output(tmp_path / "s").read_text()
    # Every finished episode is there once: none of those before the checkpoint is lost or played again.
    monitor = (row.combination.run(tmp_path / "s").path / "0.monitor.csv").read_text().splitlines()[2:]
    assert len(monitor) in (30, 31, 32)


@pytest.mark.slow
def test_a_run_is_started_again_so_often_and_no_more(ray_instance, tmp_path):
    told = Told(killing(5))
    result = run_sweep(slow_sweep(tmp_path / "s", 0.04, max_failures=0), observer=told)
    (row,) = result.rows
    assert row.state == "failed"
    assert row.failure.startswith("its process was lost 1 times")
    assert row.num_timesteps >= 32


@pytest.mark.slow
def test_retraining_draws_fresh_seeds_and_reports_them(ray_instance, tmp_path):
    convolutions = {"n_steps": 32, "n_envs": 1, "policy": "CnnPolicy", "policy_kwargs": {}, "normalize": False}
    settings = {**TINY, "algo": "a2c", "env_id": "TinyImage-v0", "log_folder": str(tmp_path), "seed": 4, "eval_freq": 0}
    found = retrain({**settings, "hyperparams": convolutions}, 2, 4)
    assert found.seeds == fresh_seeds(4, 2)
    runs = [row.combination.run(tmp_path / "retrained") for row in found.result.rows]
    assert found.values == tuple(read_result(run).mean_reward for run in runs)
    assert found.summary == summarize([found.values])
    # Such a network takes all the CPUs it is given, and a run is given one.
    assert [yaml.safe_load((run.path / "provenance.yml").read_text())["machine"]["threads"] for run in runs] == [1, 1]
    again = retrain({**settings, "hyperparams": convolutions}, 1, 4)
    assert again.values == found.values[:1]
    assert again.summary.count == 1


def test_a_file_inside_a_sweep_s_folder_is_the_same_when_that_is_moved(tmp_path):
    """As that of the best trial, which a study trains again in its own folder."""
    before, after = (Sweep(tmp_path / name, ("a2c",), ("CartPole-v1",), (0,)) for name in ("before", "after"))
    record = extend(None, before, {"config": str(before.folder / "best.yml")}, [0])
    assert extend(record, after, {"config": str(after.folder / "best.yml")}, [0]) == record
    other = str(tmp_path / "mine.yml")
    with pytest.raises(ConfigError, match=r"config: the sweep in .* has 'best\.yml', not '.*mine\.yml'"):
        extend(record, after, {"config": other}, [0])
    assert extend(None, before, {"config": other}, [0])["settings"]["config"] == other


def test_fresh_seeds():
    assert fresh_seeds(0, 5) == fresh_seeds(0, 5)
    assert fresh_seeds(0, 3) == fresh_seeds(0, 5)[:3]
    assert len({*fresh_seeds(0, 50), *fresh_seeds(1, 50)}) == 100
    assert all(0 <= seed < 2**31 for seed in fresh_seeds(2**32 - 1, 50))
    with pytest.raises(ConfigError, match="at least one seed"):
        fresh_seeds(0, 0)


def test_what_cannot_be_trained_is_found_before_anything_starts(tmp_path):
    sweep = Sweep(tmp_path / "s", ("ppo", "sac", "dqn"), ("CartPole-v1", "Pendulum-v1"), (0,), {"args": None, "device": "cpu"})
    with pytest.raises(BadCombinationsError) as caught:
        run_sweep(sweep)
    lines = caught.value.problems
    assert len(lines) == 2
    assert lines[0].startswith("sac on CartPole-v1: ")
    assert lines[1].startswith("dqn on Pendulum-v1: ")
    assert not (tmp_path / "s").exists()


def test_a_wrong_name_is_told_once(tmp_path):
    sweep = Sweep(tmp_path / "s", ("ppo", "a2d"), ("CartPol-v1", "Pendulum-v1"), (0,), {"args": None})
    with pytest.raises(BadCombinationsError) as caught:
        run_sweep(sweep)
    assert ["'a2c'" in line or "CartPole" in line for line in caught.value.problems] == [True, True]


def test_more_than_any_node_has_is_refused(ray_instance, tmp_path):
    sweep = Sweep(tmp_path / "s", ("ppo",), ("CartPole-v1",), (0,), TINY, cpus_per_run=1000)
    with pytest.raises(ConfigError, match=r"a run needs 1000 CPUs, and no node has that much; there are nodes with 4 CPUs"):
        run_sweep(sweep)
    assert not (tmp_path / "s").exists()


def test_a_gpu_that_runs_would_not_see_is_refused(tmp_path):
    sweep = Sweep(tmp_path / "s", ("ppo",), ("CartPole-v1",), (0,), {**TINY, "device": "cuda"})
    with pytest.raises(ConfigError, match="--gpus-per-run"):
        run_sweep(sweep)


def test_settings_that_cannot_be_sent_are_refused(ray_instance, tmp_path):
    import threading

    from stable_baselines3.common.callbacks import CheckpointCallback

    callback = CheckpointCallback(1000, str(tmp_path))
    callback.lock = threading.Lock()
    with pytest.raises(ConfigError, match="cannot be sent to another process"):
        run_sweep(Sweep(tmp_path / "s", ("ppo",), ("CartPole-v1",), (0,), {**TINY, "callbacks": [callback]}))


def start(folder, *words):
    command = [sys.executable, "-m", "lit_sb3_ray", "sweep", "--algos", "ppo", "--envs", "Slow-v0", "--seeds", "2", *words]
    command += ["-n", "2000", "--eval-freq", "0", "--gym-packages", "slow_envs", "--env-kwargs", "seconds:0.01", "--name", "s"]
    command += ["-params", "n_steps:32", "n_envs:1", "normalize:False", "--device", "cpu"]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    address = ray.get_runtime_context().gcs_address
    environment = {**os.environ, "PYTHONPATH": path, "RAY_ADDRESS": address}
    with (folder / "driver.txt").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


def wait_until(process, folder, condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, (folder / "driver.txt").read_text()
        assert time.monotonic() < deadline, (folder / "driver.txt").read_text()
        time.sleep(0.05)


def wait_gone(pids, seconds=20):
    deadline = time.monotonic() + seconds
    while any(Path("/proc", pid).exists() for pid in pids):
        assert time.monotonic() < deadline, "a run's process is left"
        time.sleep(0.05)


def steps_of(folder):
    """Env steps in finished episodes of each run, by its monitor file."""
    files = sorted((folder / "logs/sweeps/s/ppo").glob("Slow-v0_*/0.monitor.csv"))
    return [5 * max(0, len(file.read_text().splitlines()) - 2) for file in files]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_a_signal_or_a_killed_driver_stops_is_gone_on_with(ray_instance, tmp_path):
    sweep_folder = tmp_path / "logs/sweeps/s"
    driver = start(tmp_path)
    wait_until(driver, tmp_path, lambda: len(steps_of(tmp_path)) == 2 and min(steps_of(tmp_path)) > 40)
    with pytest.raises(ConfigError, match="by another process"):
        run_sweep(Sweep(sweep_folder, ("ppo",), ("Slow-v0",), (0,), TINY), resume=True)
    begun = time.monotonic()
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(60) == 143
    took = time.monotonic() - begun
    assert took < 20, took
    pids = [re.search(r"in process (\d+)", log.read_text())[1] for log in (sweep_folder / "output").iterdir()]
    assert len(pids) == 2
    wait_gone(pids)
    said = (tmp_path / "driver.txt").read_text()
    assert "0 of 2" in said
    assert "Stopped and saved" in said
    stopped_at = [int(row["timesteps"]) for row in rows_of(sweep_folder / "sweep.csv")]
    assert all(0 < at < 2000 for at in stopped_at)
    driver = start(tmp_path, "--max-concurrent", "2")
    wait_until(driver, tmp_path, lambda: min(steps_of(tmp_path)) > max(stopped_at) + 100)
    driver.kill()
    driver.wait()
    # At once: the runs of the killed driver may still be there.
    driver = start(tmp_path)
    assert driver.wait(200) == 0, (tmp_path / "driver.txt").read_text()
    assert [row["state"] for row in rows_of(sweep_folder / "sweep.csv")] == ["done"] * 2
    for log in (sweep_folder / "output").iterdir():
        assert log.read_text().count("Going on from checkpoint") == 2


@pytest.mark.slow
def test_env_actors_have_a_share_of_their_run_s_cpus(ray_instance, tmp_path):
    settings = {**TINY, "vec_env_type": "ray", "n_envs": 4, "n_timesteps": 256, "eval_freq": 0}
    told = Told()
    sweep = Sweep(tmp_path / "s", ("ppo",), ("CartPole-v1",), (0, 1), settings, cpus_per_run=2)
    result = run_sweep(sweep, observer=told)
    assert [(row.state, row.num_timesteps) for row in result.rows] == [("done", 256)] * 2, told.lines
    assert "4 environments: " in result.rows[0].combination.output(tmp_path / "s").read_text()
