"""Loading against a stand-in for the Hub, with the real client: what was pushed comes back as it was, for rl_zoo3 too."""

import csv
import os
import socket
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import yaml
from hub_client import AGENT, PUSH, REPO, client_of_stand_in, load
from recorded_runs import train_with_rl_zoo3

from lit_sb3_ray import load_run
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import list_runs
from lit_sb3_ray.experiment.origin import is_trusted


def weights(run):
    model, env = load_run(run, device="cpu", env_id="CartPole-v1")
    env.close()
    return {name: tensor.numpy() for name, tensor in model.policy.state_dict().items()}


def test_a_run_comes_back_as_it_was(filled, logs, tmp_path):
    own = logs / "ppo" / "CartPole-v1_1"
    run = load(tmp_path / "logs")
    assert run.path == tmp_path / "logs" / "ppo" / "CartPole-v1_1"
    assert run.model.read_bytes() == (own / "CartPole-v1.zip").read_bytes()
    assert run.statistics.read_bytes() == (own / "CartPole-v1" / "vecnormalize.pkl").read_bytes()
    assert run.evaluations.read_bytes() == (own / "evaluations.npz").read_bytes()
    with (run.path / "0.monitor.csv").open() as file:
        assert next(csv.reader(file))[0].startswith("#{")
    assert not is_trusted(run.settings)
    assert is_trusted(own / "CartPole-v1")
    theirs, ours = weights(run.path), weights(own)
    assert all(np.array_equal(theirs[name], ours[name]) for name in ours)
    origin = yaml.safe_load((run.settings / "hub.yml").read_text())
    assert origin == {"repo_id": REPO, "revision": filled.repositories[REPO].sha, "trusted": False}


def test_the_next_free_number_is_taken_and_none_is_replaced_unasked(filled, tmp_path):
    folder = tmp_path / "logs"
    assert [load(folder).path.name for _ in range(2)] == ["CartPole-v1_1", "CartPole-v1_2"]
    assert load(folder, exp_id=7).path.name == "CartPole-v1_7"
    (folder / "ppo" / "CartPole-v1_7" / "mine").touch()
    with pytest.raises(ConfigError, match=r"CartPole-v1_7' is there already: give --force"):
        load(folder, exp_id=7)
    assert (folder / "ppo" / "CartPole-v1_7" / "mine").exists()
    load(folder, exp_id=7, force=True)
    assert sorted(path.name for path in (folder / "ppo").iterdir()) == ["CartPole-v1_1", "CartPole-v1_2", "CartPole-v1_7"]
    assert not (folder / "ppo" / "CartPole-v1_7" / "mine").exists()


def test_without_a_run_folder_only_its_own_files_are_replaced(filled, tmp_path):
    folder = tmp_path / "logs"
    other = folder / "ppo" / "Acrobot-v1_1"
    other.mkdir(parents=True)
    run = load(folder, exp_id=-1)
    assert run.model == folder / "ppo" / "CartPole-v1.zip"
    with pytest.raises(ConfigError, match="give --force"):
        load(folder, exp_id=-1)
    load(folder, exp_id=-1, force=True)
    assert other.exists()


def test_a_repository_without_such_a_run_is_told(hub, pushed, tmp_path):
    for missing in ("ppo-CartPole-v1.zip", "config.yml"):
        hub.add(REPO, {name: content for name, content in pushed.items() if name != missing})
        with pytest.raises(ConfigError, match=f"has no {missing}, so it holds no such run; it has .*README.md"):
            load(tmp_path / "logs")
    with pytest.raises(ConfigError, match="me/nothing: there is no such repository, or it is private"):
        load(tmp_path / "logs", repo_name="nothing")
    hub.add(REPO, pushed)
    with pytest.raises(ConfigError, match="it has no such revision"):
        load(tmp_path / "logs", revision="v9")
    assert not (tmp_path / "logs").exists()


def test_a_private_repository_needs_its_token(filled, tmp_path, monkeypatch):
    filled.repositories[REPO].private = True
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(ConfigError, match="private and not open to you"):
        load(tmp_path / "logs")
    assert load(tmp_path / "logs", token="hf_letmein").model.exists()


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path, monkeypatch):
    with client_of_stand_in(tmp_path):
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(ConfigError, match=f"cannot download from {REPO}: ") as caught:
            load(tmp_path / "logs")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "logs").exists()


def test_only_what_a_run_has_is_wanted(hub, pushed, tmp_path):
    few = {name: pushed[name] for name in ("ppo-CartPole-v1.zip", "config.yml", "vec_normalize.pkl")}
    hub.add(REPO, {**few, "run.py": b"x", "pytorch_model.bin": b"x"})
    run = load(tmp_path / "logs")
    assert not [request for request in hub.requests if "run.py" in request or "bin" in request]
    assert sorted(path.name for path in run.path.rglob("*") if path.is_file()) == [
        "CartPole-v1.zip",
        "config.yml",
        "hub.yml",
        "vecnormalize.pkl",
    ]
    model, env = load_run(run.path, device="cpu", algo="ppo", env_id="CartPole-v1")
    assert model.predict(env.reset())[0].shape == (1,)
    env.close()


def test_a_run_that_rl_zoo3_has_downloaded_is_known_by_its_files(filled, tmp_path):
    run = load(tmp_path / "logs")
    (run.settings / "hub.yml").unlink()
    assert not is_trusted(run.settings)
    (run.settings / "env_kwargs.yml").unlink()
    assert is_trusted(run.settings)


def test_a_downloaded_run_is_trained_on(filled, tmp_path):
    run = load(tmp_path / "logs")
    words = ["-f", str(tmp_path / "other"), "-i", str(run.model), "-n", "64", "--device", "cpu", "--verbose", "0"]
    assert cli.main(["train", *AGENT, *words, "--eval-freq", "-1", "-params", "n_steps:32", "n_envs:2", "normalize:True"]) == 0


def test_enjoy_fetches_what_is_missing_in_rl_trained_agents(hub, pushed, tmp_path, capsys):
    hub.add("sb3/ppo-CartPole-v1", pushed)
    folder = tmp_path / "rl-trained-agents"
    words = ["enjoy", *AGENT, "-f", str(folder), "--no-render", "-n", "50", "--device", "cpu"]
    for expected in (1, 0):
        assert cli.main(words) == 0
        out = capsys.readouterr().out
        assert out.count("downloading it from the Hub") == expected
        assert "Mean reward" in out
    assert [path.name for path in (folder / "ppo").iterdir()] == ["CartPole-v1_1"]
    assert cli.main([*words, "--exp-id", "9"]) == 2
    assert "ids are 1" in capsys.readouterr().err
    assert cli.main([*words, "--algo", "a2c"]) == 2
    err = capsys.readouterr().err
    assert "no runs of a2c" in err
    assert "cannot download from sb3/a2c-CartPole-v1: there is no such repository" in err
    assert cli.main(["enjoy", *AGENT, "-f", str(tmp_path / "logs"), "--no-render"]) == 2
    assert "sb3/ppo" not in capsys.readouterr().err


@pytest.mark.slow
def test_rl_zoo3_loads_and_plays_what_was_pushed(filled, tmp_path):
    env = {**os.environ, "HF_ENDPOINT": filled.url, "HF_HOME": str(tmp_path / "home"), "TRUST_REMOTE_CODE": "True"}
    words = [*AGENT, "-f", str(tmp_path / "logs")]
    command = [sys.executable, "-m", "rl_zoo3.load_from_hub", *words, "-orga", "me"]
    subprocess.run(command, env=env, capture_output=True, check=True)
    run = tmp_path / "logs" / "ppo" / "CartPole-v1_1"
    assert not is_trusted(run / "CartPole-v1")
    model, envs = load_run(run, device="cpu")
    assert model.predict(envs.reset())[0].shape == (1,)
    envs.close()
    command = [sys.executable, "-m", "rl_zoo3.enjoy", *words, "--no-render", "-n", "100"]
    played = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert "Mean reward" in played.stdout


@pytest.mark.slow
def test_the_client_finds_the_hub_by_its_environment_variables(filled, tmp_path):
    env = {**os.environ, "HF_ENDPOINT": filled.url, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    words = [sys.executable, "-m", "lit_sb3_ray", "load-from-hub", *AGENT, "-orga", "me", "-f", str(tmp_path / "logs")]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Saved to {tmp_path}/logs/ppo/CartPole-v1_1"


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_told_in_one_line(tmp_path):
    with socket.socket() as taken:
        # Nobody listens there as long as it is taken.
        taken.bind(("127.0.0.1", 0))
        env = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{taken.getsockname()[1]}", "HF_HOME": str(tmp_path / "home")}
        words = [sys.executable, "-m", "lit_sb3_ray", "load-from-hub", *AGENT, "-orga", "me", "-f", str(tmp_path / "logs")]
        done = subprocess.run(words, env={**env, "NO_PROXY": "127.0.0.1"}, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "cannot download from me/ppo-CartPole-v1: the Hub cannot be reached: " in line
    assert not (tmp_path / "logs").exists()


def files_of_rl_zoo3(run, folder):
    """What rl_zoo3's push of a run holds: its own files, with their YAML tags."""
    settings = run / "CartPole-v1"
    metrics = folder / "metrics.zip"
    with zipfile.ZipFile(metrics, "w") as archive:
        for file in [run / "evaluations.npz", *run.glob("*.csv")]:
            archive.write(file, file.name)
    files = {name: (settings / name).read_bytes() for name in ("args.yml", "config.yml")}
    return files | {
        "ppo-CartPole-v1.zip": (run / "CartPole-v1.zip").read_bytes(),
        "vec_normalize.pkl": (settings / "vecnormalize.pkl").read_bytes(),
        "env_kwargs.yml": b"{render_mode: rgb_array}\n",
        "train_eval_metrics.zip": metrics.read_bytes(),
    }


@pytest.mark.slow
def test_a_run_of_rl_zoo3_is_loaded_and_pushed_again(hub, tmp_path, capsys):
    theirs = train_with_rl_zoo3(tmp_path / "theirs")
    files = files_of_rl_zoo3(theirs / "ppo" / "CartPole-v1_1", tmp_path)
    assert b"!!python/object/apply:collections.OrderedDict" in files["config.yml"]
    hub.add(REPO, files)
    run = load(tmp_path / "logs")
    assert not is_trusted(run.settings)
    played = ["enjoy", *AGENT, "-f", str(tmp_path / "logs"), "--no-render", "-n", "50", "--device", "cpu"]
    assert cli.main(played) == 0
    assert "Mean reward" in capsys.readouterr().out
    assert cli.main([*PUSH, "-f", str(tmp_path / "logs"), "-name", "again"]) == 0
    again = hub.repositories["me/again"].files
    assert again["ppo-CartPole-v1.zip"] == files["ppo-CartPole-v1.zip"]
    assert yaml.safe_load(again["config.yml"])["policy"] == "MlpPolicy"


ENDED_IN_THE_MIDDLE = """
import os, signal, sys
from lit_sb3_ray.cli.main import main
from lit_sb3_ray.hub import download
download.extract = lambda *_: os.kill(os.getpid(), signal.Signals[sys.argv[1]])
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_download_that_is_ended_leaves_no_half_of_a_run(filled, tmp_path, name):
    env = {**os.environ, "HF_ENDPOINT": filled.url, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    words = ["load-from-hub", *AGENT, "-orga", "me", "-f", str(tmp_path / "logs")]
    done = subprocess.run([sys.executable, "-c", ENDED_IN_THE_MIDDLE, name, *words], env=env, capture_output=True, text=True)
    if name == "SIGKILL":
        assert done.returncode == -9
        assert list_runs(tmp_path / "logs" / "ppo", "CartPole-v1") == []
    else:
        assert done.returncode == 143
        assert not (tmp_path / "logs").exists()
    assert load(tmp_path / "logs").path.name == "CartPole-v1_1"


def test_a_folder_that_cannot_take_it_is_told_in_one_line(filled, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ppo").touch()
    with pytest.raises(ConfigError, match=r"logs/ppo' cannot be written: File exists"):
        load(tmp_path / "logs")
