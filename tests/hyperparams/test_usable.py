"""Every packaged entry can be used: its keys, policy, wrappers and environment exist, and each default builds a model."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401  (registers its environments)
import pytest
import yaml

from lit_sb3_ray.config.algorithms import ALGOS

HYPERPARAMS = Path(__file__).resolve().parents[2] / "hyperparams"
ALGORITHMS = sorted(path.stem for path in HYPERPARAMS.glob("*.yml"))

# Keys that the experiment uses itself; every other key is an argument of the algorithm's constructor.
SPECIAL_KEYS = {"n_timesteps", "n_envs", "normalize", "frame_stack", "env_wrapper", "noise_type", "noise_std", "use_masking"}

# Ids that gymnasium and its companions no longer have, kept because figures were published for them.
RETIRED = re.compile(r"(CarRacing-v0|LunarLander(Continuous)?NoVel-v2|.*-v2|Fetch.*-v1|Panda.*-v1)")
# Ids of companion packages, private packages and simulators.
ELSEWHERE = re.compile(r".*Bullet.*Env-v0|Fetch.*|Panda.*|parking-v0|A1.*|NeckEnv.*|donkey-.*|RocketLander-.*")
# The autoencoder that the published CarRacing entries of sac and tqc were trained with; no registry has it.
NOT_ON_PYPI = "ae.wrapper.AutoencoderWrapper"
NOVEL = re.compile(r"(?P<name>\w+)NoVel-(?P<version>v\d)")


def entries(algo: str) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((HYPERPARAMS / f"{algo}.yml").read_text(encoding="utf-8"))


def wrapper_paths(entry: dict[str, Any]) -> list[str]:
    return [next(iter(item)) if isinstance(item, dict) else item for item in entry.get("env_wrapper", [])]


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_keys_are_arguments_of_the_algorithm(algo):
    known = set(inspect.signature(ALGOS[algo].__init__).parameters) | SPECIAL_KEYS
    for env_id, entry in entries(algo).items():
        assert set(entry) <= known, env_id
        assert entry["n_timesteps"] > 0, env_id


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_policies_are_known_to_the_algorithm(algo):
    for env_id, entry in entries(algo).items():
        assert entry["policy"] in ALGOS[algo].policy_aliases, env_id


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_wrappers_exist(algo):
    paths = {path for entry in entries(algo).values() for path in wrapper_paths(entry)}
    for path in paths:
        module, _, name = path.rpartition(".")
        if path == NOT_ON_PYPI:
            continue
        assert issubclass(getattr(importlib.import_module(module), name), gym.Wrapper), path


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_environments_are_registered(algo):
    for env_id in set(entries(algo)) - {"default", "atari"}:
        if RETIRED.fullmatch(env_id) or ELSEWHERE.fullmatch(env_id):
            continue
        novel = NOVEL.fullmatch(env_id)
        assert gym.spec(f"{novel['name']}-{novel['version']}" if novel else env_id)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_default_builds_a_model(algo):
    entry = entries(algo)["default"]
    arguments = {key: value for key, value in entry.items() if key not in SPECIAL_KEYS}
    discrete = algo in {"dqn", "qrdqn", "ppo_mask"}
    model = ALGOS[algo](env=gym.make("CartPole-v1" if discrete else "Pendulum-v1"), device="cpu", **arguments)
    assert model.policy is not None
    model.env.close()
