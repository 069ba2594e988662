"""A run's console table and metrics.csv are always there, Lightning's loggers and profilers when asked for."""

from __future__ import annotations

import csv

import pytest
import pytorch_lightning as pl
from stable_baselines3 import PPO
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.experiment.loggers import tensorboard_folder
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.lit.loggers import WandbSettings

FIGURES = {"n_envs": 1, "n_steps": 16, "batch_size": 16, "n_epochs": 1, "n_timesteps": 48, "normalize": False}


def run(tmp_path, **options):
    settings = {"eval_freq": -1, "verbose": 0, "hyperparams": FIGURES, **options}
    manager = ExperimentManager(None, "ppo", "TinyCount-v0", str(tmp_path / "logs"), **settings)
    manager.learn(manager.setup_experiment())
    return manager.run.path


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("verbose", "tables"), [(0, 0), (1, 3)])
def test_the_table_is_printed_unless_the_run_is_to_be_quiet(verbose, tables, tmp_path, capsys):
    path = run(tmp_path, verbose=verbose, loggers=["csv"])
    told = capsys.readouterr()
    assert told.out.count("total_timesteps ") == tables
    assert verbose or (told.out, told.err) == ("", "")
    assert [row["step"] for row in rows(path / "metrics.csv")] == ["16", "32", "48"]
    assert [row["step"] for row in rows(path / "csv" / "version_0" / "metrics.csv")] == ["16", "32", "48"]


def test_metrics_of_rollouts_and_evaluations_are_in_every_logger(tmp_path):
    own = pl.loggers.CSVLogger(tmp_path / "own", name="", version="x")
    path = run(tmp_path, eval_freq=16, loggers=["tensorboard", own])
    expected = {"rollout/ep_rew_mean": ["16", "32", "48"], "eval/mean_reward": ["16", "32", "48"], "train/loss": ["32", "48"]}
    events = EventAccumulator(str(path / "tensorboard" / "PPO_1"))
    events.Reload()
    for metric, steps in expected.items():
        assert sorted({row["step"] for row in rows(path / "metrics.csv") if row[metric]}) == steps
        assert sorted({row["step"] for row in rows(tmp_path / "own" / "x" / "metrics.csv") if row[metric]}) == steps
        assert sorted({str(row.step) for row in events.Scalars(metric)}) == steps


def test_runs_of_weights_and_biases_follow_each_other(tmp_path, monkeypatch):
    import wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("first", "second"):
        path = run(tmp_path, loggers=["wandb"], wandb=WandbSettings(name=name))
        assert wandb.run is None
        assert len(list(path.glob("wandb/offline-run-*"))) == 1


def test_tensorboard_runs_are_numbered_as_sb3_does(tmp_path):
    model, folder = PPO("MlpPolicy", "TinyCount-v0", n_steps=16, device="cpu"), RunFolder(tmp_path / "run", "A/B-v0")
    assert tensorboard_folder(model, folder, "") == tmp_path / "run" / "tensorboard" / "PPO_1"
    home = tmp_path / "tb" / "A-B-v0"
    for name in ("PPO_2", "PPO_10", "SAC_11", "PPO_x"):
        (home / name).mkdir(parents=True)
    assert tensorboard_folder(model, folder, str(tmp_path / "tb")) == home / "PPO_11"


@pytest.mark.parametrize("profiler", ["simple", "advanced", "pytorch"])
def test_a_profiler_s_report_is_in_the_run_folder(profiler, tmp_path):
    path = run(tmp_path, profiler=profiler, hyperparams={**FIGURES, "n_timesteps": 32})
    (report,) = path.glob("fit-profile*.txt")
    text = report.read_text()
    assert "collect_rollouts" in text
    assert "train" in text.replace("run_training", "").split("collect_rollouts", 1)[1]
    assert not list(tmp_path.glob("*.json"))


def test_lightning_s_callbacks_work_in_a_run(tmp_path):
    stopping = pl.callbacks.EarlyStopping("eval/mean_reward", mode="max", patience=1)
    saving = pl.callbacks.ModelCheckpoint(monitor="eval/mean_reward", mode="max")
    path = run(tmp_path, eval_freq=16, callbacks=[stopping, saving], loggers=["csv"])
    assert stopping.wait_count == 1
    assert rows(path / "metrics.csv")[-1]["step"] == "32"
    assert (path / "checkpoints" / "32" / "model.zip").exists()
    assert saving.best_model_path.startswith(str(path))


def test_nothing_is_left_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(tmp_path, eval_freq=16, loggers=["tensorboard", "csv"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["logs"]
