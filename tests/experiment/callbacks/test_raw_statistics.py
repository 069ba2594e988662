"""RawStatisticsCallback logs every episode as the monitor tells it, and says when nobody would see it."""

from __future__ import annotations

import csv
import logging

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.experiment.callbacks import RawStatisticsCallback

PATH = "rl_zoo3.callbacks.RawStatisticsCallback"
RETURN, LENGTH = "raw/rollouts/episodic_return", "raw/rollouts/episodic_length"


def scalars(folder):
    (file,) = folder.rglob("events.*")
    board = EventAccumulator(str(file))
    board.Reload()
    return {name: [(event.step, event.value) for event in board.Scalars(name)] for name in (RETURN, LENGTH)}


def test_a_file_that_names_it_logs_every_episode(tmp_path):
    entry = {"policy": "MlpPolicy", "n_timesteps": 64, "n_steps": 16, "batch_size": 16, "callback": PATH}
    (tmp_path / "own.py").write_text(f"hyperparams = {{'TinyCount-v0': {entry!r}}}")
    options = {"eval_freq": -1, "seed": 1, "verbose": 0, "device": "cpu", "tensorboard_log": str(tmp_path / "tb")}
    manager = ExperimentManager(
        None, "ppo", "TinyCount-v0", str(tmp_path / "logs"), config=str(tmp_path / "own.py"), **options
    )
    model = manager.setup_experiment()
    manager.learn(model)
    with (manager.run.path / "0.monitor.csv").open() as file:
        file.readline()
        episodes = [(float(row["r"]), int(row["l"])) for row in csv.DictReader(file)]
    assert len(episodes) == 12
    found = scalars(tmp_path / "tb")
    # Every episode takes five steps, and one after another ends.
    assert found[RETURN] == [(5 * (index + 1), reward) for index, (reward, _) in enumerate(episodes)]
    assert found[LENGTH] == [(5 * (index + 1), length) for index, (_, length) in enumerate(episodes)]
    assert "raw/" not in manager.run.metrics.read_text()


def test_it_works_under_sb3_itself(tmp_path):
    model = PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, device="cpu")
    model.set_logger(configure(str(tmp_path), ["tensorboard"]))
    model.learn(32, RawStatisticsCallback())
    assert [value for _, value in scalars(tmp_path)[RETURN]] == [15.0] * 6


@pytest.mark.parametrize("folder", ["", "tb"])
def test_it_says_once_when_nobody_would_see_it(folder, tmp_path, caplog):
    model = PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, device="cpu")
    model.set_logger(configure(str(tmp_path), ["csv", *(["tensorboard"] if folder else [])]))
    with caplog.at_level(logging.WARNING, "lit_sb3_ray"):
        model.learn(32, RawStatisticsCallback())
    assert [record for record in caplog.messages if "nowhere to write" in record][1:] == []
    assert ("nowhere to write" in caplog.text) is (folder == "")
