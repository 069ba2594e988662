"""`sweep` from its flags to what is told: names, seeds, settings, bad input, the live line, exit codes."""

import contextlib
import os
import pty
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli import sweep
from lit_sb3_ray.cli.flags import parse_flags
from lit_sb3_ray.cli.sweep_parser import OWN_DEFAULTS, build_parser, sweep_arguments
from lit_sb3_ray.experiment.arguments import TRAIN_DEFAULTS
from lit_sb3_ray.experiment.manager import ExperimentManager
from lit_sb3_ray.tuning.sweeps.combination import Combination
from lit_sb3_ray.tuning.sweeps.dispatch import Progress
from lit_sb3_ray.tuning.sweeps.hub import Report

TINY = ["-n", "64", "--eval-freq", "0", "--eval-episodes", "1", "--device", "cpu", "-params", "n_steps:32", "n_envs:1"]


def flags(*words):
    return parse_flags(build_parser(), words, sweep_arguments())


def test_flags_that_train_has_too_have_its_defaults():
    shared = sweep_arguments().keys() - OWN_DEFAULTS.keys()
    assert shared <= TRAIN_DEFAULTS.keys()
    assert {"n_timesteps", "vec_env", "eval_freq", "device", "hyperparams"} <= shared


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        ([], (0, 1, 2, 3, 4)),
        (["--seeds", "3"], (0, 1, 2)),
        (["--seeds", "2", "--seed", "10"], (10, 11)),
        (["--seeds", "3", "7", "11"], (3, 7, 11)),
    ],
)
def test_one_number_is_how_many_seeds_and_several_are_the_seeds(words, seeds):
    assert sweep.build_sweep(flags(*words))[0].seeds == seeds


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--seeds", "0"], "--seeds 0"),
        (["--seeds", "3", "3"], "--seeds names 3 twice"),
        (["--algos", "ppo", "a2c", "ppo"], "--algos names ppo twice"),
        (["--envs", "CartPole-v1", "CartPole-v1"], "--envs names CartPole-v1 twice"),
        (["--seeds", "1", "2", "--seed", "3"], "--seed is the first seed"),
        (["--seeds", "-1"], "-1"),
        (["--name", "a/b"], "--name 'a/b'"),
        (["--name", "../up"], "--name"),
        (["--conf-file", "missing.yml"], "there is no such file"),
        (["--cpus-per-run", "0"], "--cpus-per-run"),
        (["--gpus-per-run", "-1"], "--gpus-per-run"),
        (["--n-jobs", "0"], "--n-jobs"),
        (["--alg0", "ppo"], "did you mean '--algos'"),
        (["--env-kwargs", "nothing"], "nothing"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, part, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", *words]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_bad_combinations_are_a_line_each(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--algos", "sac", "ppo", "dqn", "--envs", "CartPole-v1", "Pendulum-v1", "--device", "cpu"]
    assert cli.main(["sweep", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [re.match(r"lit-sb3-ray: error: (\w+ on [\w-]+): ", line)[1] for line in lines] == [
        "sac on CartPole-v1",
        "dqn on Pendulum-v1",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_is_named_after_what_it_combines_and_goes_on_when_asked():
    found, resume = sweep.build_sweep(flags("--algos", "ppo", "my:Own", "--envs", "ALE/Pong-v5", "-f", "out"))
    assert (found.folder, resume) == (Path("out/sweeps/ppo+my-Own_ALE-Pong-v5"), False)
    assert sweep.build_sweep(flags("--resume"))[1]
    assert sweep.build_sweep(flags("--name", "mine"))[0].folder == Path("logs/sweeps/mine")
    assert sweep.build_sweep(flags("--name", "mine"))[1]
    assert len(sweep.sweep_name(["ppo"] * 90, ["A"])) == 80


def test_settings_are_those_of_a_manager(tmp_path):
    words = [
        "-params",
        "n_steps:32",
        "--env-kwargs",
        "gravity:1.0",
        "--logger",
        "csv",
        "--save-freq",
        "-1",
        "--vec-env",
        "dummy",
    ]
    found = sweep.build_sweep(flags(*words, "--eval-episodes", "3", "--n-envs", "2"))[0].settings
    manager = ExperimentManager(**found, algo="ppo", env_id="CartPole-v1", log_folder=str(tmp_path), seed=1)
    assert (manager.custom_hyperparams, manager.env_kwargs, manager.loggers) == ({"n_steps": 32}, {"gravity": 1.0}, ["csv"])
    assert (manager.save_freq, manager.vec_env_type, manager.n_eval_episodes, manager.given_n_envs) == (-1, "dummy", 3, 2)
    assert manager.arguments()["eval_episodes"] == 3
    assert "save_freq" not in sweep.build_sweep(flags())[0].settings


def test_a_configuration_file_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.yml").write_text("CartPole-v1: {n_timesteps: 10, policy: MlpPolicy}\n")
    assert sweep.build_sweep(flags("--conf-file", "own.yml"))[0].settings["config"] == str(tmp_path / "own.yml")
    assert sweep.build_sweep(flags("--conf-file", "own_module"))[0].settings["config"] == "own_module"


def test_the_live_line():
    running = (
        (Combination("ppo", "CartPole-v1", 0, 1), Report(1, 5000, 10000, 31.25)),
        (Combination("a2c", "CartPole-v1", 1, 2), Report(2, 10, 100, None)),
        (Combination("a2c", "CartPole-v1", 2, 3), None),
    )
    line = sweep.progress_line(Progress(waiting=3, running=running, done=2, failed=1), 200)
    assert line == (
        "2 of 9 done, 1 failed | ppo CartPole-v1 0: 50% 31.2 | a2c CartPole-v1 1: 10% | a2c CartPole-v1 2: starting"
    )
    short = sweep.progress_line(Progress(3, running, 2, 1), 40)
    assert len(short) < 40
    assert short.endswith("...")


@pytest.mark.slow
def test_a_sweep_prints_its_table_and_a_failure_is_code_1(ray_instance, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [
        "sweep",
        "--algos",
        "ppo",
        "--envs",
        "CartPole-v1",
        "TinyBroken-v0",
        "--seeds",
        "1",
        "--gym-packages",
        "tiny_envs",
    ]
    assert cli.main([*words, *TINY]) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert (
        sum(line.startswith(("ppo on CartPole-v1, seed 0: ", "ppo on TinyBroken-v0, seed 0: failed: ")) for line in lines) == 2
    )
    assert [re.split("  +", line)[:3] for line in lines[-5:-2]] == [
        ["algo", "env", "seeds"],
        ["ppo", "CartPole-v1", "1"],
        ["ppo", "TinyBroken-v0", "0 of 1, 1 failed"],
    ]
    assert lines[-1] == "logs/sweeps/ppo_CartPole-v1+TinyBroken-v0"
    assert re.search(r"ppo on TinyBroken-v0, seed 0 has failed: .*NonFiniteError.*its output: .*\.log", err)
    assert cli.main([*words, *TINY]) == 2
    assert "--resume" in capsys.readouterr().err


def read_all(descriptor):
    """Reads a terminal until its other end is closed, which is an error there."""
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(descriptor, 4096):
            shown += part
    os.close(descriptor)
    return shown.decode()


@pytest.mark.slow
def test_on_a_terminal_one_line_is_kept_up_to_date(ray_instance, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader, writer = pty.openpty()
    with ThreadPoolExecutor() as pool, os.fdopen(writer, "w", buffering=1) as terminal:
        reading = pool.submit(read_all, reader)
        monkeypatch.setattr("sys.stdout", terminal)
        assert cli.main(["sweep", "--algos", "ppo", "--envs", "CartPole-v1", "--seeds", "1", *TINY]) == 0
        terminal.close()
        shown = reading.result()
    assert "\r\x1b[K0 of 1 done | ppo CartPole-v1 0: starting" in shown
    assert "\r\x1b[Kppo on CartPole-v1, seed 0: " in shown
