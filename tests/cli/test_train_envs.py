"""`train` with its flags for envs in Ray actors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lit_sb3_ray.cli import main as cli

SHORT = ["--device", "cpu", "--num-threads", "1", "--eval-freq", "-1", "-params", "n_steps:32", "n_envs:2", "--seed", "3"]
GIVEN = ["--envs-per-actor", "2", "--env-cpus", "0.5", "--env-timeout", "9", "--max-env-restarts", "1"]

# Ray has two CPUs here, whatever the machine has.
ON_TWO_CPUS = """
import sys
import ray
from lit_sb3_ray.cli.main import main
ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--envs-per-actor", "0"], "--envs-per-actor: 0 is below 1"),
        (["--envs-per-actor", "many"], "--envs-per-actor: 'many' is not a whole number"),
        (["--env-cpus", "0"], "--env-cpus: 0 is not a positive number"),
        (["--env-cpus", "half"], "--env-cpus: 'half' is not a number"),
        (["--env-cpus", "0.00001"], "env_cpus must be a number of CPUs, 0.0001 or more"),
        (["--env-timeout", "-3"], "--env-timeout: -3 is not a positive number"),
        (["--env-timeout", "nan"], "--env-timeout: nan is not a positive number"),
        (["--max-env-restarts", "-1"], "--max-env-restarts: -1 is below 0"),
    ],
)
def test_wrong_values_are_one_line(words, part, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert part in line


def test_a_dry_run_says_what_will_step_the_envs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def stack(*words):
        assert cli.main(["train", *SHORT, "--dry-run", *words]) == 0
        return yaml.safe_load(capsys.readouterr().out)["envs"]["stack"]

    actors = "RayVecEnv(envs_per_actor=2, env_cpus=0.5, env_timeout=9.0, max_env_restarts=1)"
    assert actors in stack("--vec-env", "ray", *GIVEN)
    assert actors in stack(*GIVEN)
    assert "RayVecEnv(max_env_restarts=3)" in stack("--vec-env", "subproc")
    assert "DummyVecEnv" in stack("--vec-env", "dummy")
    assert "DummyVecEnv" in stack("--n-envs", "1")
    assert "DummyVecEnv or RayVecEnv(max_env_restarts=3), by the time that a step of the environment takes" in stack()


@pytest.mark.parametrize("flags", [["--env-cpus", "0.5"], ["--envs-per-actor", "auto"], ["--env-timeout", "9"]])
def test_flags_of_actors_are_refused_where_there_are_none(flags, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SHORT, "--vec-env", "dummy", *flags]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{flags[0]} with --vec-env dummy, which has no actors: leave out one or the other" in line


@pytest.mark.parametrize("vec_env", ["auto", "ray"])
def test_flags_of_actors_are_told_where_none_was_needed(vec_env, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SHORT, "-n", "32", "--vec-env", vec_env, "--n-envs", "1", "--env-cpus", "0.5"]) == 0
    told = [line for line in caplog.messages if "env_cpus" in line]
    assert told == [f"vec_env {vec_env}: env_cpus has no effect, since no environment is in an actor"]


def test_settings_are_kept_and_may_change_when_the_run_goes_on(tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    given = {"envs_per_actor": 2, "env_cpus": 0.5, "env_timeout": 9.0, "max_env_restarts": 1}
    assert cli.main(["train", *SHORT, "-n", "64", "--vec-env", "dummy"]) == 0
    run = Path(capsys.readouterr().out.splitlines()[-1])
    assert cli.main(["train", "--resume", str(run), "-n", "96", *GIVEN]) == 0
    assert "envs_per_actor, env_cpus, env_timeout has no effect" in caplog.text
    arguments = run / "CartPole-v1" / "args.yml"

    def kept():
        saved = yaml.safe_load(arguments.read_text())
        return {name: saved[name] for name in given}

    assert kept() == given
    anew = ["--envs-per-actor", "auto", "--env-cpus", "1", "--env-timeout", "30", "--max-env-restarts", "0"]
    assert cli.main(["train", "--resume", str(run), "-n", "128", *anew]) == 0
    assert kept() == {"envs_per_actor": "auto", "env_cpus": 1.0, "env_timeout": 30.0, "max_env_restarts": 0}


@pytest.mark.usefixtures("ray_instance")
def test_more_than_ray_can_ever_have_is_refused_in_seconds_with_the_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    start = time.monotonic()
    words = ["--vec-env", "ray", "--n-envs", "64", "--envs-per-actor", "1", "--env-cpus", "1"]
    assert cli.main(["train", *SHORT, *words]) == 2
    assert time.monotonic() - start < 10
    [line] = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert "64 env actors for training with 1 CPUs each need 64 CPUs, but Ray has 4 for them" in line
    assert line.endswith("raise --envs-per-actor, or lower --env-cpus, --n-envs or --n-eval-envs")
    assert list(tmp_path.rglob("*.yml")) == []


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_eight_actors_with_one_env_each_train_on_two_cpus(tmp_path):
    words = ["train", *SHORT, "-n", "512", "--vec-env", "ray", "--envs-per-actor", "1", "--n-envs", "8", "--eval-freq", "256"]
    done = subprocess.run(
        [sys.executable, "-c", ON_TWO_CPUS, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_AUTH_MODE": "disabled"},
    )
    assert done.returncode == 0, done.stderr
    assert "8 environments: 8 actors with 0.2222 CPUs each, 0 environments in this process" in done.stderr
    run = tmp_path / done.stdout.splitlines()[-1]
    assert (run / "CartPole-v1.zip").is_file()
    assert len(list(run.glob("*.monitor.csv"))) == 8
