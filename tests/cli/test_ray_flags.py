"""The flags of Ray: in `train`, `tune`, `sweep` and `benchmark` alike, and part of no run's own settings."""

from __future__ import annotations

import argparse

import pytest

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.cli import benchmark_parser, sweep_parser, train_parser, tune
from lit_sb3_ray.cli.flags import parse_flags
from lit_sb3_ray.cli.ray_flags import memory, ray_settings
from lit_sb3_ray.cli.sweep import build_sweep
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import RAY_DEFAULTS, resumed_arguments, train_arguments
from lit_sb3_ray.scale.ray_settings import RaySettings

WORDS = ["--ray-address", "local", "--ray-num-cpus", "3", "--ray-num-gpus", "0", "--ray-object-store-memory", "100M"]
MORE = ["--ray-dashboard", "--env-vars", "A=1", "B=2"]


@pytest.mark.parametrize(
    "parser",
    [train_parser.build_parser, tune.build_parser, sweep_parser.build_parser, benchmark_parser.build_parser],
    ids=["train", "tune", "sweep", "benchmark"],
)
def test_the_commands_take_them(parser, tmp_path):
    (tmp_path / "my_envs.py").touch()
    shipped = ["--py-modules", str(tmp_path / "my_envs.py"), "--working-dir", str(tmp_path)]
    asked = ray_settings(parser().parse_args([*WORDS, *MORE, *shipped]))
    assert asked == RaySettings(
        address="local",
        num_cpus=3,
        num_gpus=0,
        object_store_memory=100 * 2**20,
        dashboard=True,
        py_modules=(str(tmp_path / "my_envs.py"),),
        working_dir=str(tmp_path),
        env_vars=(("A", "1"), ("B", "2")),
    )
    assert ray_settings(parser().parse_args([])) == RaySettings()


@pytest.mark.parametrize(("text", "size"), [("1000", 1000), ("500M", 500 * 2**20), ("1.5g", 3 * 2**29), ("2 GiB", 2**31)])
def test_amounts_of_memory(text, size):
    assert memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "1P", "-1G"])
def test_what_is_no_amount_of_memory(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no amount of memory"):
        memory(text)


def test_a_run_s_settings_do_not_say_where_it_was_carried_out(tmp_path):
    """A resume would otherwise look for a cluster that is long gone."""
    given = {"ray_address": "10.0.0.1:6379", "env_vars": ["A=1"], "py_modules": ["x"]}
    manager = ExperimentManager(train_arguments(given), "ppo", "CartPole-v1", str(tmp_path))
    kept = manager.arguments()
    assert {name: kept[name] for name in RAY_DEFAULTS} == {
        name: list(value) if isinstance(value, tuple) else value for name, value in RAY_DEFAULTS.items()
    }
    again = resumed_arguments(kept, {"resume": "run", "ray_address": "auto"}, "run")
    assert again["ray_address"] == "auto"
    assert again["py_modules"] == []


def test_a_sweep_s_runs_are_not_told_where_they_are(tmp_path):
    words = ["--ray-address", "local", "--ray-num-cpus", "2", "-f", str(tmp_path), "--env-vars", "A=1"]
    sweep, _ = build_sweep(parse_flags(sweep_parser.build_parser(), words, sweep_parser.sweep_arguments()))
    assert sweep.ray_settings == RaySettings(address="local", num_cpus=2, env_vars=(("A", "1"),))
    assert not set(RAY_DEFAULTS) & {*sweep.settings, *sweep.settings["args"]}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ray-num-cpus", "-1"], "--ray-num-cpus"),
        (["--ray-object-store-memory", "much"], "is no amount of memory"),
        (["--placement", "anywhere"], "--placement"),
    ],
)
def test_bad_values_are_one_line(words, told):
    with pytest.raises(ConfigError, match=told):
        parse_flags(train_parser.build_parser(), words, train_arguments())
