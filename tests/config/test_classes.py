"""Dotted paths lead to classes of the expected kind, ours for rl_zoo3's, and nothing behind them is called."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import pytest
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import VecMonitor

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.problems import MissingPackageError
from lit_sb3_ray.errors import ConfigError

WHERE = "env_wrapper, own.yml"


@pytest.mark.parametrize("path", ["gymnasium.wrappers.TimeLimit", "gymnasium.wrappers:TimeLimit", gym.wrappers.TimeLimit])
def test_accepts_dots_a_colon_and_classes(path):
    assert resolve_class(path, ClassKind.ENV_WRAPPER, WHERE) is gym.wrappers.TimeLimit


def test_knows_every_kind():
    assert resolve_class("stable_baselines3.common.vec_env.VecMonitor", ClassKind.VEC_ENV_WRAPPER, WHERE) is VecMonitor
    path = "stable_baselines3.common.callbacks.CheckpointCallback"
    assert resolve_class(path, ClassKind.CALLBACK, WHERE) is CheckpointCallback
    assert resolve_class("stable_baselines3.ppo.MlpPolicy", ClassKind.POLICY, WHERE).__name__ == "ActorCriticPolicy"


@pytest.mark.parametrize("module", ["rl_zoo3.wrappers", "utils.wrappers"])
def test_names_of_the_peer_mean_our_wrappers(module):
    found = resolve_class(f"{module}.HistoryWrapper", ClassKind.ENV_WRAPPER, WHERE)
    assert found.__module__.startswith("lit_sb3_ray.envs.wrappers")


def test_the_peer_is_never_imported():
    code = (
        "import sys; from lit_sb3_ray.config.classes import *; "
        "resolve_class('rl_zoo3.wrappers.FrameSkip', ClassKind.ENV_WRAPPER, ''); print('rl_zoo3' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "False"


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("subprocess.Popen", ClassKind.ENV_WRAPPER, "'subprocess.Popen' is no environment wrapper"),
        ("subprocess.Popen", ClassKind.CALLBACK, "'subprocess.Popen' is no callback"),
        ("gymnasium.wrappers.TimeLimit", ClassKind.VEC_ENV_WRAPPER, "does not descend from VecEnvWrapper"),
        ("os.system", ClassKind.CALLBACK, "is no callback class"),
        ("gymnasium.wrappers.TimeLimt", ClassKind.ENV_WRAPPER, "did you mean 'gymnasium.wrappers.TimeLimit'"),
        ("rl_zoo3.wrappers.HistroyWrapper", ClassKind.ENV_WRAPPER, "did you mean 'rl_zoo3.wrappers.HistoryWrapper'"),
        ("rl_zoo3.utils.linear_schedule", ClassKind.CALLBACK, "no counterpart"),
        ("gymnasium.wraps.TimeLimit", ClassKind.ENV_WRAPPER, "did you mean 'gymnasium.wrappers'"),
        ("json.Nothing", ClassKind.CALLBACK, "leads nowhere"),
        ("math:pi.Nothing", ClassKind.CALLBACK, "leads nowhere"),
        ("TimeLimit", ClassKind.ENV_WRAPPER, "dotted path"),
        ("a b.C", ClassKind.ENV_WRAPPER, "dotted path"),
        ("gymnasium.wrappers.__builtins__", ClassKind.ENV_WRAPPER, "private"),
        (3, ClassKind.ENV_WRAPPER, "not 3"),
        (int, ClassKind.ENV_WRAPPER, "'int' is no environment wrapper"),
    ],
)
def test_says_what_is_wrong_with_a_path(path, kind, message):
    with pytest.raises(ConfigError, match=message) as caught:
        resolve_class(path, kind, WHERE)
    assert WHERE in str(caught.value)


def test_a_missing_package_names_the_extra_or_itself():
    with pytest.raises(MissingPackageError, match=r"pip install 'lit-sb3-ray\[panda\]'"):
        resolve_class("panda_gym.no_such_part.Wrapper", ClassKind.ENV_WRAPPER, WHERE)
    with pytest.raises(MissingPackageError, match="package that provides 'no_such_package'"):
        resolve_class("no_such_package.Wrapper", ClassKind.ENV_WRAPPER, WHERE)
