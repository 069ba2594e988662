"""The registry is open, imports nothing before a class is taken, and refuses what has no SB3 interface."""

from __future__ import annotations

import subprocess
import sys

import pytest
from stable_baselines3 import PPO

from lit_sb3_ray.config.algorithms import ALGOS, AlgorithmRegistry, resolve_algorithm
from lit_sb3_ray.config.problems import MissingPackageError
from lit_sb3_ray.errors import ConfigError

NAMES = ["a2c", "ars", "crossq", "ddpg", "dqn", "ppo", "ppo_lstm", "ppo_mask", "qrdqn", "sac", "td3", "tqc", "trpo"]


class OwnPPO(PPO):
    """A user's algorithm."""


def test_has_the_thirteen_algorithms():
    assert sorted(ALGOS) == NAMES
    assert {name: ALGOS[name].__name__ for name in ("ppo", "ppo_lstm", "ppo_mask", "crossq")} == {
        "ppo": "PPO",
        "ppo_lstm": "RecurrentPPO",
        "ppo_mask": "MaskablePPO",
        "crossq": "CrossQ",
    }


def test_config_and_registry_look_ups_import_nothing_heavy():
    code = (
        "import sys; from lit_sb3_ray.config import algorithms, assignments, files, hyperparams; "
        "assert 'ppo' in algorithms.ALGOS and len(list(algorithms.ALGOS)) == 13; "
        "assignments.parse_assignments(['a:1e-3'], '-params'); files.read_entries(None, 'ppo'); "
        "print([m for m in ('torch', 'stable_baselines3', 'sb3_contrib', 'gymnasium', 'numpy', 'ray') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "[]"


def test_is_extended_by_class_or_path_and_shrunk():
    registry = AlgorithmRegistry({"ppo": "stable_baselines3:PPO"})
    registry["own"] = OwnPPO
    registry["other"] = "stable_baselines3.a2c:A2C"
    assert registry["own"] is OwnPPO
    assert registry["other"].__name__ == "A2C"
    del registry["ppo"]
    assert sorted(registry) == ["other", "own"]
    with pytest.raises(KeyError):
        registry["ppo"]


@pytest.mark.parametrize("bad", [int, "no path", len])
def test_refuses_to_register_what_is_no_algorithm(bad):
    with pytest.raises(ConfigError):
        AlgorithmRegistry({})["bad"] = bad


def test_resolves_names_and_paths():
    assert resolve_algorithm("ppo") is PPO
    assert resolve_algorithm("stable_baselines3.ppo.ppo:PPO") is PPO


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pppo", "unknown algorithm 'pppo' .*did you mean 'ppo'"),
        ("her", "replay buffer, not an algorithm"),
        ("os:path", "no algorithm class"),
        ("stable_baselines3:HerReplayBuffer", "no learn, predict"),
        ("stable_baselines3:PPOO", "did you mean 'PPO'"),
        ("subprocess:Popen", "no learn"),
    ],
)
def test_names_what_is_wrong_with_an_algorithm(name, message):
    with pytest.raises(ConfigError, match=message):
        resolve_algorithm(name)


def test_missing_package_of_an_algorithm_names_the_extra():
    with pytest.raises(MissingPackageError, match=r"lit-sb3-ray\[jax\]") as caught:
        resolve_algorithm("sbx.no_such_part:PPO")
    assert caught.value.package == "sbx"
