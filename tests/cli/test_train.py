"""`train` from its settings to a saved run: what is refused early, what is printed, exit codes, going on."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli import train
from lit_sb3_ray.cli.flags import parse_flags
from lit_sb3_ray.cli.train_parser import LOGGERS, build_parser
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import train_arguments

SHORT = ["--device", "cpu", "--num-threads", "1", "--eval-freq", "-1", "-params", "n_steps:32", "n_envs:2", "--seed", "3"]


def settings(*words):
    return train.read_settings(parse_flags(build_parser(), words, train_arguments()))


def test_a_negative_seed_is_drawn_and_kept():
    drawn = {settings().seed for _ in range(3)}
    assert len(drawn) == 3
    assert all(0 <= seed < train.MAX_SEED for seed in drawn)
    assert settings("--seed", "7").seed == 7


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], None),
        (["--logger", "none"], ()),
        (["--logger", "csv", "tensorboard", "csv"], ("csv", "tensorboard")),
        (["--track"], ("wandb",)),
        (["--logger", "csv", "wandb", "--track"], ("csv", "wandb")),
    ],
)
def test_loggers_asked_for(words, names):
    assert train.logger_names(settings(*words)) == names


def test_the_parser_knows_the_loggers_there_are():
    from lit_sb3_ray.lit import loggers

    assert (*loggers.LOGGERS, "none") == LOGGERS


def test_what_weights_and_biases_is_told():
    told = train.wandb_settings(
        settings("--track", "--seed", "3", "--wandb-group", "g", "-tags", "a", "b", "--wandb-entity", "e"), 1700000000
    )
    assert (told.name, told.project, told.entity, told.group) == ("CartPole-v1__ppo__3__1700000000", "sb3", "e", "g")
    assert told.tags[:2] == ("a", "b")
    assert re.fullmatch(r"v\d+\.\d+.*", told.tags[2])
    assert told.config["eval_freq"] == 25000


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--trial-id", "0"], "--trial-id needs --storage and --study-name"),
        (["--trial-id", "0", "--storage", "s.log"], "--trial-id needs --storage and --study-name"),
        (["--seed", str(2**32)], "--seed"),
        (["-i", "nothing.zip"], "no such file"),
        (["-i", "model.pth"], "ends in .zip"),
        (["--logger", "none", "csv"], "stands alone"),
        (["--logger", "none", "--track"], "stands alone"),
        (["--logger", "none", "-tb", "tb"], "stands alone"),
    ],
)
def test_refused_at_once(words, part):
    with pytest.raises(ConfigError, match=re.escape(part)):
        train.check_settings(settings(*words))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--env", "CartPol-v1"], "did you mean 'CartPole-v1'"),
        (["--algo", "pppo"], "did you mean 'ppo'"),
        (["-params", "learning_rat:0.1"], "did you mean 'learning_rate'"),
        (["-params", "n_timesteps:0"], "n_timesteps"),
        (["-params", "policy_kwargs:__import__('os').system('touch ran')"], "policy_kwargs"),
        (["-params", "env_wrapper:subprocess.Popen"], "subprocess.Popen"),
        (["--conf-file", "missing.yml"], "missing.yml"),
        (["--gym-packages", "no_such_package"], "no_such_package"),
        (["--resume", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, part, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("lit-sb3-ray: error: ")
    assert part in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_broken_zip_is_bad_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("model.zip").write_text("no zip")
    assert cli.main(["train", *SHORT, "-n", "64", "-i", "model.zip"]) == 2
    assert "'model.zip': not a zip archive, or a broken one" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]


def test_a_dry_run_prints_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SHORT, "-n", "64", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "CartPole-v1" in out
    assert "n_steps" in out
    assert list(tmp_path.iterdir()) == []


def test_train_ends_with_the_evaluation_and_the_run_s_path(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [*SHORT, "-n", "128", "--eval-freq", "64", "--eval-episodes", "2"]
    assert cli.main(["train", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Mean reward of the final model: \d+\.\d\d \+/- \d+\.\d\d \(2 episodes\)", lines[-2])
    run = Path(lines[-1])
    assert (run / "CartPole-v1.zip").is_file()
    saved = yaml.safe_load((run / "CartPole-v1" / "args.yml").read_text())
    assert set(train_arguments()) <= set(saved)
    assert saved["seed"] == 3


def test_without_evaluation_only_the_path_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SHORT, "-n", "64", "--verbose", "0"]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["train", *SHORT, "-n", "64"]) == 0
    out = capsys.readouterr().out
    assert "Mean reward" not in out
    assert Path(out.splitlines()[-1]).name == "CartPole-v1_2"


def test_resume_takes_the_run_s_settings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SHORT, "-n", "64"]) == 0
    run = capsys.readouterr().out.splitlines()[-1]
    assert cli.main(["train", "--resume", run, "--env", "Acrobot-v1"]) == 2
    assert "--env 'Acrobot-v1' contradicts --resume" in capsys.readouterr().err
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert cli.main(["train", "--resume", run, "-n", "192", "--dry-run"]) == 0
    assert "n_timesteps: 192" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert cli.main(["train", "--resume", run, "-n", "192"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == run

    from stable_baselines3 import PPO

    assert PPO.load(Path(run) / "CartPole-v1.zip", device="cpu").num_timesteps == 192


def signalled(words, folder, has_begun, signum):
    """Trains in a process of its own, sends it a signal once it has begun, and gives its exit code and standard error."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "lit_sb3_ray", "train", *words]
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not has_begun():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "it has not begun"
            time.sleep(0.1)
        process.send_signal(signum)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    return process.returncode, err


@pytest.mark.slow
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_says_how_to_go_on_and_sets_the_code(signum, code, tmp_path):
    monitor = tmp_path / "logs" / "ppo" / "CartPole-v1_1" / "0.monitor.csv"

    def trains():
        return monitor.exists() and len(monitor.read_text().splitlines()) > 5

    returncode, err = signalled([*SHORT, "-n", "100000000"], tmp_path, trains, signum)
    assert returncode == code
    assert "Go on with: lit-sb3-ray train --resume logs/ppo/CartPole-v1_1" in err.splitlines()[-1]
    assert (tmp_path / "logs" / "ppo" / "CartPole-v1_1" / "CartPole-v1.zip").is_file()


SLOW_START = """
import os, time
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Slow(CartPoleEnv):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        open("begun", "w").close()
        time.sleep(60)

gym.register("SlowStart-v0", Slow, max_episode_steps=10)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_before_training_leaves_nothing(signum, code, tmp_path):
    (tmp_path / "slow_start.py").write_text(SLOW_START)
    words = ["--algo", "ppo", "--env", "SlowStart-v0", "--gym-packages", "slow_start", "--vec-env", "dummy", "-n", "100"]
    conf = ["-f", "logs", "-params", "n_envs:1", "n_steps:32", "batch_size:16"]
    returncode, err = signalled([*words, *conf], tmp_path, (tmp_path / "begun").exists, signum)
    assert returncode == code
    assert err.splitlines()[-1] == "lit-sb3-ray: interrupted"
    assert not (tmp_path / "logs").exists()
