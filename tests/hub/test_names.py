"""Repositories are called as rl_zoo3 calls them."""

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.hub.connection import connect
from lit_sb3_ray.hub.names import model_name, repository


@pytest.mark.parametrize(
    ("algo", "env_id", "name"),
    [
        ("ppo", "CartPole-v1", "ppo-CartPole-v1"),
        ("dqn", "ALE/Pong-v5", "dqn-ALE-Pong-v5"),
        ("sac", "my_package:Mine-v0", "sac-Mine-v0"),
        ("own.module:Algo", "CartPole-v1", "own.module-Algo-CartPole-v1"),
    ],
)
def test_models(algo, env_id, name):
    assert model_name(algo, env_id) == name
    assert repository("sb3", algo, env_id) == f"sb3/{name}"


def test_names_agree_with_rl_zoo3_s_own():
    from huggingface_sb3 import EnvironmentName, ModelName, ModelRepoId

    for env_id in ("CartPole-v1", "ALE/Pong-v5", "my_package:Mine-v0"):
        assert ModelRepoId("sb3", ModelName("ppo", EnvironmentName(env_id))) == repository("sb3", "ppo", env_id)


@pytest.mark.parametrize(("organization", "name"), [("a/b", None), ("", None), ("a", "b/c"), ("a", "")])
def test_bad_names_are_told(organization, name):
    with pytest.raises(ConfigError, match="a repository is <organization>/<name>"):
        repository(organization, "ppo", "CartPole-v1", name)


@pytest.mark.parametrize("token", ["", " ", "bad\nheader", "ü", "two words"])
def test_what_can_be_no_token_is_told_without_telling_it(token):
    with pytest.raises(ConfigError, match=r"^--token: no token is empty") as caught:
        connect(token)
    assert not token.strip() or token.strip() not in str(caught.value)
