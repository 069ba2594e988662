"""What a downloaded run names is built when it is played: not what would write files anywhere."""

import gymnasium as gym
import pytest
import yaml
from made_runs import train
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecVideoRecorder

from lit_sb3_ray import load_run
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.wrappers import refuse_writers


class Own(gym.wrappers.RecordVideo):
    """As good as its base."""


@pytest.mark.parametrize("writer", [Monitor, VecMonitor, VecVideoRecorder, gym.wrappers.RecordVideo, Own])
def test_wrappers_that_write_files_are_refused(writer):
    harmless = [(gym.wrappers.TimeLimit, {"max_episode_steps": 5}), (VecFrameStack, {"n_stack": 2})]
    refuse_writers(harmless, "config.yml")
    with pytest.raises(ConfigError, match=rf"^config\.yml was refused: the wrapper {writer.__name__} .*; add --trust"):
        refuse_writers([*harmless, (writer, {})], "config.yml")


def test_a_run_from_others_writes_nothing_where_its_maker_wants(tmp_path):
    run = train(tmp_path / "logs", "--env", "TinyCount-v0")
    config, made = run / "TinyCount-v0" / "config.yml", tmp_path / "there.monitor.csv"
    settings = yaml.safe_load(config.read_text())
    wrapper = {"stable_baselines3.common.monitor.Monitor": {"filename": str(tmp_path / "there")}}
    config.write_text(yaml.safe_dump({**settings, "env_wrapper": [wrapper]}))
    with pytest.raises(ConfigError, match="the wrapper Monitor"):
        load_run(run, trusted=False, gym_packages=["tiny_envs"])
    assert not made.exists()
    load_run(run)[1].close()
    assert made.exists()
