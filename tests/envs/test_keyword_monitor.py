"""`monitor_kwargs` with `info_keywords`: what an env's info lacks is told in one line; the env's own errors are its own."""

import gymnasium as gym
import pytest
from stable_baselines3.common.monitor import Monitor

import tiny_envs
from lit_sb3_ray.cli.main import main
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.errors import ConfigError


class InfoEnv(tiny_envs.CountEnv):
    """TinyCount that may look up what it does not have."""

    own = False

    def step(self, action):
        *result, info = super().step(action)
        if InfoEnv.own:
            {}["score"]
        return *result, {**info, "score": 7}


gym.register(id="TinyInfo-v0", entry_point=InfoEnv)


def played(env):
    env.reset(seed=0)
    while True:
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            return info


def spec(*keywords):
    return EnvSpec("TinyInfo-v0", monitor_kwargs={"info_keywords": keywords})


def test_a_keyword_that_is_there_is_kept():
    env = spec("score").make()
    assert played(env)["episode"]["score"] == 7
    assert isinstance(env, Monitor)


def test_one_that_is_not_there_is_told_by_its_name():
    with pytest.raises(ConfigError, match="monitor_kwargs: info_keywords has 'scores', which no info of TinyInfo-v0 has"):
        played(spec("score", "scores").make())


def test_an_error_of_the_env_is_not_taken_for_it(monkeypatch):
    monkeypatch.setattr(InfoEnv, "own", True)
    with pytest.raises(KeyError, match="score"):
        played(spec("score").make())


@pytest.mark.parametrize("vec_env", ["dummy", "ray"])
def test_a_training_ends_with_that_line(vec_env, ray_instance, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--algo", "a2c", "-n", "500", "--device", "cpu", "--vec-env", vec_env, "--n-envs", "2", "--verbose", "0"]
    assert main(["train", *words, "-params", "monitor_kwargs:dict(info_keywords=('scores',))"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "lit-sb3-ray: error: monitor_kwargs: info_keywords has 'scores', which no info of CartPole-v1 has"
