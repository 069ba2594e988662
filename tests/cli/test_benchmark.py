"""`benchmark`: flags as rl_zoo3's, bad input in one line before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lit_sb3_ray.benchmarking.runs import Run
from lit_sb3_ray.benchmarking.scoring import Score
from lit_sb3_ray.benchmarking.table import Row
from lit_sb3_ray.cli import benchmark
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.benchmark_parser import build_parser
from lit_sb3_ray.scale.ray_settings import RaySettings

PEER = {
    "log_dir": "rl-trained-agents/",
    "benchmark_dir": "logs/benchmark/",
    "n_timesteps": 150000,
    "n_envs": 1,
    "verbose": 1,
    "seed": 0,
    "test_mode": False,
    "with_mujoco": False,
    "no_hub": False,
}


def test_flags_and_defaults_are_rl_zoo3s():
    args = vars(build_parser().parse_args([]))
    assert PEER.items() <= args.items()
    assert args["num_threads"] == 1


def test_what_is_asked_for():
    words = [
        "--log-dir",
        "l",
        "-n",
        "9",
        "--n-envs",
        "2",
        "--seed",
        "3",
        "--load-best",
        "--published",
        "none",
        "--n-jobs",
        "4",
    ]
    found = benchmark.build_benchmark(build_parser().parse_args([*words, "--env", "A-v0", "B-v0", "--algo", "ppo"]))
    assert (found.log_dir, found.folder, found.published) == (Path("l"), Path("logs/benchmark"), ())
    assert (found.rules.n_timesteps, found.rules.n_envs, found.rules.seed, found.rules.load_best) == (9, 2, 3, True)
    assert (found.trust, found.ray_settings) == (False, RaySettings())
    assert (found.algos, found.env_ids, found.n_jobs) == (("ppo",), ("A-v0", "B-v0"), 4)
    assert len(benchmark.build_benchmark(build_parser().parse_args([])).published) == 199
    own = ["--ray-address", "local", "--ray-num-cpus", "3", "--env-vars", "A=1"]
    expected = RaySettings(address="local", num_cpus=3, env_vars=(("A", "1"),))
    assert benchmark.build_benchmark(build_parser().parse_args(own)).ray_settings == expected


def test_lines():
    run = Run(Path("logs/ppo/CartPole-v1_3"), "ppo", "CartPole-v1")
    line = benchmark.row_line(Row(run, Score(1.0, 0.5, 10, 20, 2)), 1, 3)
    assert line == "[1/3] ppo CartPole-v1_3: 1.00 +/- 0.50 (2 episodes)"
    assert benchmark.row_line(Row(run, problem="no model"), 2, 3) == "[2/3] ppo CartPole-v1_3: not played: no model"


@pytest.fixture
def logs(tmp_path):
    settings = tmp_path / "logs" / "ppo" / "CartPole-v1_1" / "CartPole-v1"
    settings.mkdir(parents=True)
    (settings / "config.yml").write_text("{}")
    (tmp_path / "empty").mkdir()
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--log-dir", "none"], "there is no folder 'none'"),
        (["--log-dir", "empty"], "'empty' holds no runs"),
        (["--log-dir", "logs/ppo"], "is the folder of one algorithm: give the log folder instead"),
        (["--log-dir", "logs/ppo/CartPole-v1_1"], "is a run folder: give the log folder instead"),
        (["--log-dir", "logs", "--algo", "pppo"], "did you mean 'ppo'"),
        (["--log-dir", "logs", "--env", "CartPole-v0"], "did you mean 'CartPole-v1'"),
        (["--seed", "-1"], "--seed -1"),
        (["-n", "0"], "0 is below 1"),
        (["--num-threads", "0"], "0 is below 1"),
        (["--published", "none.csv"], "'none.csv' cannot be read"),
        (["--gym-packages", "no_such_package"], "no_such_package"),
        (["--logdir", "x"], "did you mean '--log-dir'"),
        (["--ray-address", "nonsense"], "nonsense"),
        (["--ray-address", "127.0.0.1:6379", "--ray-num-cpus", "2"], "--ray-num-cpus"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, part, logs, monkeypatch, capsys):
    monkeypatch.chdir(logs.parent)
    before = sorted(logs.parent.rglob("*"))
    assert cli.main(["benchmark", *words]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert len(err.splitlines()) == 1
    assert sorted(logs.parent.rglob("*")) == before


def test_runs_that_cannot_be_played_need_no_ray(logs, tmp_path, capsys):
    words = ["benchmark", "--log-dir", str(logs), "--benchmark-dir", str(tmp_path / "b")]
    assert cli.main(words) == 1
    out = capsys.readouterr().out
    assert "no CartPole-v1.zip in" in out
    assert (tmp_path / "b" / "benchmark.md").is_file()
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["benchmark.csv", "benchmark.md"]
