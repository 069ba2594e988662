"""Every kind of logger gets SB3's metrics at their env step, with whichever packages are installed."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from pytorch_lightning.loggers import CSVLogger
from stable_baselines3 import PPO
from stable_baselines3.common.logger import HParam, Image, Video
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.loggers import LightningWriter, WandbSettings, check_loggers, finishing_wandb, make_loggers

ROOT = Path(__file__).parents[2]
STEPS = [16, 32, 48]
# Each episode of TinyCount-v0 returns 15.
METRIC, RETURN = "rollout/ep_rew_mean", 15.0


def train(loggers):
    model = PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
    trainer = RLTrainer(max_steps=48, logger=loggers)
    trainer.fit(model)
    return trainer


def board(folder):
    events = EventAccumulator(str(folder))
    events.Reload()
    return events


class TestKinds:
    def test_tensorboard(self, tmp_path):
        train(make_loggers(["tensorboard"], tmp_path, "run", tensorboard_log=tmp_path / "tb" / "PPO_1"))
        assert [(row.step, row.value) for row in board(tmp_path / "tb" / "PPO_1").Scalars(METRIC)] == [
            (s, RETURN) for s in STEPS
        ]

    def test_csv(self, tmp_path):
        train(make_loggers(["csv"], tmp_path, "run"))
        with (tmp_path / "csv" / "version_0" / "metrics.csv").open() as file:
            rows = [(int(row["step"]), float(row[METRIC])) for row in csv.DictReader(file) if row[METRIC]]
        assert rows == [(step, RETURN) for step in STEPS]

    def test_mlflow_writes_files_into_the_run(self, tmp_path, monkeypatch):
        # A space in the path, as a user's folder may have one.
        run = tmp_path / "my logs" / "ppo" / "TinyCount-v0_1"
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
        monkeypatch.chdir(tmp_path)
        train(make_loggers(["mlflow"], run, run.name))
        (file,) = run.glob(f"mlruns/*/*/metrics/{METRIC}")
        assert [int(line.split()[2]) for line in file.read_text().splitlines()] == STEPS
        assert {line.split()[1] for line in file.read_text().splitlines()} == {str(RETURN)}
        assert "status: 3" in (file.parents[2] / "meta.yaml").read_text()
        assert [path.name for path in tmp_path.iterdir()] == ["my logs"]

    def test_wandb_ends_its_run(self, tmp_path, monkeypatch):
        import wandb

        monkeypatch.setenv("WANDB_MODE", "offline")
        monkeypatch.setenv("WANDB_SILENT", "true")
        settings = WandbSettings("project", "my run", tags=("a", "b"), config={"algo": "ppo"})
        with finishing_wandb(["wandb"]):
            loggers = make_loggers(["wandb"], tmp_path, "run", wandb=settings)
            train(loggers)
            run = wandb.run
            assert (run.project, run.name, run.tags, run.config["algo"]) == ("project", "my run", ("a", "b"), "ppo")
            assert run.summary["trainer/global_step"] == STEPS[-1]
            assert run.summary[METRIC] == RETURN
        assert wandb.run is None
        assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))

    def test_several_at_once(self, tmp_path):
        trainer = train(make_loggers(["csv", "tensorboard", "csv"], tmp_path, "run"))
        assert [type(logger).__name__ for logger in trainer.loggers] == ["CSVLogger", "TensorBoardLogger"]
        assert [row.step for row in board(tmp_path / "tensorboard").Scalars(METRIC)] == STEPS


class TestMedia:
    MEDIA = {  # noqa: RUF012
        "text": "hello",
        "picture": Image(np.zeros((3, 8, 8), np.uint8), "CHW"),
        "film": Video(torch.zeros(1, 4, 3, 8, 8, dtype=torch.uint8), 10),
        "weights": torch.arange(5.0),
        "hyperparameters": HParam({"lr": 0.1}, {"loss": 0.0}),
    }

    def test_tensorboard_gets_them_and_the_others_are_not_disturbed(self, tmp_path):
        trainer = train(make_loggers(["tensorboard", "csv"], tmp_path, "run"))
        LightningWriter(trainer).write({**self.MEDIA, "loss": 2.0}, dict.fromkeys([*self.MEDIA, "loss"]), 64)
        events = board(tmp_path / "tensorboard")
        tags = events.Tags()
        assert set(tags["images"]) == {"picture", "film"}
        assert events.Images("film")[0].encoded_image_string.startswith(b"GIF")
        assert tags["histograms"] == ["weights"]
        assert "text/text_summary" in tags["tensors"]
        assert {row.step for name in ("picture", "film") for row in events.Images(name)} == {64}
        with (tmp_path / "csv" / "version_0" / "metrics.csv").open() as file:
            last = list(csv.DictReader(file))[-1]
        assert (last["step"], float(last["loss"])) == ("64", 2.0)
        assert not last.keys() & self.MEDIA.keys()

    def test_what_was_recorded_for_other_outputs_stays_there(self, tmp_path):
        trainer = train(make_loggers(["tensorboard", "csv"], tmp_path, "run"))
        excluded = {"a": ("tensorboard",), "b": ("csv", "stdout"), "c": None}
        LightningWriter(trainer).write({"a": 1.0, "b": 2.0, "c": 3.0}, excluded, 64)
        assert {"a", "b", "c"} & set(board(tmp_path / "tensorboard").Tags()["scalars"]) == {"b", "c"}
        header = (tmp_path / "csv" / "version_0" / "metrics.csv").read_text().splitlines()[0].split(",")
        assert {"a", "b", "c"} & set(header) == {"a", "c"}


def test_a_resumed_tensorboard_run_forgets_the_steps_that_come_again(tmp_path):
    for first, purge in ((1, None), (3, 3)):
        (logger,) = make_loggers(["tensorboard"], tmp_path, "run", purge_step=purge)
        for step in range(first, first + 4):
            logger.log_metrics({"x": float(step + 10 * first)}, step)
        logger.finalize("success")
        # The two runs of a real resume do not begin in one second, by which TensorBoard sorts the files.
        (file,) = (tmp_path / "tensorboard").glob("events.out.tfevents.*.*")
        file.rename(file.with_name(f"events.out.tfevents.{first}"))
    assert [(row.step, row.value) for row in board(tmp_path / "tensorboard").Scalars("x")] == [
        (1, 11.0),
        (2, 12.0),
        (3, 33.0),
        (4, 34.0),
        (5, 35.0),
        (6, 36.0),
    ]


def test_unknown_loggers_are_named_with_the_nearest_known():
    with pytest.raises(ConfigError, match=r"unknown logger 'tensorbord' \(--logger\): did you mean 'tensorboard'"):
        check_loggers(["csv", "tensorbord"])


SCRIPT = """
import sys
from pathlib import Path
sys.path += [{root!r}, {tests!r}]
import tiny_envs
from stable_baselines3 import PPO
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.loggers import check_loggers, make_loggers

for name in ("tensorboard", "wandb", "mlflow"):
    try:
        check_loggers([name])
    except ConfigError as error:
        print(error)
if {train}:
    loggers = make_loggers(["tensorboard"], Path("."), "run")
    print(type(loggers[0].experiment).__module__)
    model = PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    RLTrainer(max_steps=48, logger=loggers).fit(model)
"""


def run_without(hidden, folder, train):
    """Runs the script where some of the installed packages are missing, their metadata too, as pip would leave it."""
    site = folder / "site"
    site.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.name.lower().split("-")[0] not in hidden:
            (site / path.name).symlink_to(path)
    script = SCRIPT.format(root=str(ROOT), tests=str(ROOT / "tests"), train=train)
    environ = {**os.environ, "PYTHONPATH": str(site), "WANDB_MODE": "offline"}
    # -S keeps the folder that everything is installed in off the path.
    done = subprocess.run([sys.executable, "-S", "-c", script], cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("hidden", "writer"), [("tensorboard", "tensorboardX.writer"), ("tensorboardx", "torch.utils.tensorboard.writer")]
)
def test_one_of_the_two_tensorboard_packages_is_enough(hidden, writer, tmp_path):
    assert run_without({hidden, "wandb", "mlflow", "mlflow_skinny"}, tmp_path, train=True) == [
        "logger 'wandb' needs the package wandb: pip install 'lit-sb3-ray[wandb]'",
        "logger 'mlflow' needs the package mlflow: pip install 'lit-sb3-ray[mlflow]'",
        writer,
    ]
    assert [row.step for row in board(tmp_path / "tensorboard").Scalars(METRIC)] == STEPS


def test_without_both_tensorboard_packages_the_missing_one_is_named(tmp_path):
    told = "logger 'tensorboard' needs the package tensorboardX or tensorboard: pip install tensorboardX"
    assert run_without({"tensorboard", "tensorboardx"}, tmp_path, train=False) == [told]


def test_a_csv_logger_of_the_users_own_gets_the_same_steps(tmp_path):
    train(CSVLogger(tmp_path, name="", version="mine"))
    with (tmp_path / "mine" / "metrics.csv").open() as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == STEPS
