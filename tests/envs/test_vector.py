"""The stack is rl_zoo3's, bit for bit, and bad parts of it are refused with nothing left open."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecCheckNan,
    VecEnvWrapper,
    VecFrameStack,
    VecNormalize,
    VecTransposeImage,
    sync_envs_normalization,
)

import tiny_envs
from lit_sb3_ray.envs import wrappers
from lit_sb3_ray.envs.monitor import EpisodeRecorder, MonitorFiles
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.errors import ConfigError

PLAYER = Path(__file__).with_name("peer_envs.py")


def load_player():
    spec = importlib.util.spec_from_file_location("peer_envs", PLAYER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


play = load_player().play


def layers(env):
    """Types of the vectorised stack, the outermost first."""
    found = []
    while isinstance(env, VecEnvWrapper):
        found.append(type(env))
        env = env.venv
    return [*found, type(env)]


CASES = [
    {"env_id": "CartPole-v1", "n_envs": 3, "normalize": {"gamma": 0.98}},
    {
        "env_id": "Pendulum-v1",
        "n_envs": 2,
        "kwargs": {"max_episode_steps": 40},
        "normalize": {"norm_obs": False},
        "frame_stack": 3,
    },
    {"env_id": "PendulumNoVel-v1", "n_envs": 2, "normalize": {}},
    {"env_id": "LunarLanderNoVel-v3", "n_envs": 1},
    {"env_id": "MountainCarContinuous-v0", "env_wrapper": {"rl_zoo3.wrappers.HistoryWrapper": {"horizon": 3}}},
    {
        "env_id": "Pendulum-v1",
        "env_wrapper": [{"rl_zoo3.wrappers.FrameSkip": {"skip": 2}}, "sb3_contrib.common.wrappers.TimeFeatureWrapper"],
        "vec_env_wrapper": "stable_baselines3.common.vec_env.VecCheckNan",
    },
    {
        "env_id": "Pendulum-v1",
        "env_wrapper": [
            {"rl_zoo3.wrappers.ActionSmoothingWrapper": {"smoothing_coef": 0.6}},
            {"rl_zoo3.wrappers.DelayedRewardWrapper": {"delay": 7}},
        ],
        "eval_env": True,
        "normalize": {"gamma": 0.9},
    },
]
DEFAULTS = {
    "n_envs": 2,
    "kwargs": {},
    "env_wrapper": None,
    "vec_env_wrapper": None,
    "normalize": None,
    "frame_stack": None,
    "eval_env": False,
    "seed": 5,
    "steps": 420,
}
CASES = [{**DEFAULTS, **case} for case in CASES]


def components(value):
    """Classes and arguments of a wrapper entry, `rl_zoo3.` names meaning ours."""
    found = []
    for item in value if isinstance(value, list) else [value] if value else []:
        path, kwargs = next(iter(item.items())) if isinstance(item, dict) else (item, {})
        module, name = path.replace("rl_zoo3.wrappers", "lit_sb3_ray.envs.wrappers").rsplit(".", 1)
        found.append((getattr(importlib.import_module(module), name), kwargs))
    return tuple(found)


def test_stack_is_rl_zoo3s_bit_for_bit_with_its_monitor_files(tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps(CASES))
    command = [sys.executable, "-W", "ignore", str(PLAYER), str(tmp_path / "cases.json"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for number, case in enumerate(CASES):
        folder = tmp_path / f"ours{number}"
        env = build_vec_env(
            EnvSpec(case["env_id"], case["kwargs"], wrappers=components(case["env_wrapper"])),
            case["n_envs"],
            seed=case["seed"],
            vec_env_wrappers=components(case["vec_env_wrapper"]),
            normalize=case["normalize"],
            training=not case["eval_env"],
            frame_stack=case["frame_stack"],
            monitor=None if case["eval_env"] else MonitorFiles(folder),
        )
        ours = play(env, case["steps"], case["seed"])
        with np.load(tmp_path / f"{number}.npz") as peer:
            for key, value in ours.items():
                assert value.dtype == peer[key].dtype, (case, key)
                assert value.tobytes() == peer[key].tobytes(), (case, key)
        theirs = sorted((tmp_path / str(number)).glob("*")) if (tmp_path / str(number)).exists() else []
        assert [path.name for path in theirs] == sorted(path.name for path in folder.glob("*"))
        for path in theirs:
            assert rows(path) == rows(folder / path.name)


def rows(path):
    """A monitor file without its clock: header's id, columns, and each row's return, length and further columns."""
    first, columns, *lines = path.read_bytes().split(b"\n")
    kept = [b",".join(part for index, part in enumerate(line.split(b",")) if index != 2) for line in lines]
    return json.loads(first[1:])["env_id"], columns, kept


def test_stack_is_make_vec_envs_for_images():
    spec = EnvSpec("TinyImage-v0")
    expected = VecTransposeImage(VecFrameStack(make_vec_env("TinyImage-v0", 2, seed=3), 4))
    ours = build_vec_env(spec, 2, seed=3, frame_stack=4)
    assert layers(ours) == [VecTransposeImage, VecFrameStack, DummyVecEnv]
    assert ours.observation_space.shape == (12, 36, 36)
    theirs = play(expected, 20, 0)
    for key, value in play(ours, 20, 0).items():
        np.testing.assert_array_equal(value, theirs[key])


def test_order_of_the_stack():
    env = build_vec_env(
        EnvSpec("TinyCount-v0"),
        2,
        seed=0,
        vec_env_wrappers=((VecCheckNan, {"raise_exception": True}),),
        normalize={},
        frame_stack=2,
    )
    assert layers(env) == [VecFrameStack, VecNormalize, VecCheckNan, DummyVecEnv]


def test_images_are_transposed_only_where_channels_are_last():
    assert layers(build_vec_env(EnvSpec("TinyImage-v0"), 1, seed=0)) == [VecTransposeImage, DummyVecEnv]
    first = build_vec_env(EnvSpec("TinyImage-v0"), 1, seed=0, vec_env_wrappers=((VecTransposeImage, {}),))
    assert layers(first) == [VecTransposeImage, DummyVecEnv]

    class Pictures(gym.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            number = gym.spaces.Box(0, 1, (1,), np.float32)
            self.observation_space = gym.spaces.Dict({"image": env.observation_space, "number": number})

        def observation(self, observation):
            return {"image": observation, "number": np.zeros(1, np.float32)}

    mixed = build_vec_env(EnvSpec("TinyImage-v0", wrappers=((Pictures, {}),)), 1, seed=0)
    assert layers(mixed) == [VecTransposeImage, DummyVecEnv]
    assert mixed.observation_space["image"].shape == (3, 36, 36)


def test_evaluation_takes_saved_statistics_and_freezes_them(tmp_path):
    spec = EnvSpec("Pendulum-v1")
    train = build_vec_env(spec, 1, seed=0, normalize={"gamma": 0.9})
    play(train, 50, 0)
    train.save(str(tmp_path / "vecnormalize.pkl"))
    for training in (True, False):
        stats = {"normalize": {"clip_obs": 1.0}, "stats_path": tmp_path / "vecnormalize.pkl"}
        loaded = build_vec_env(spec, 2, seed=0, training=training, **stats)
        assert (loaded.training, loaded.norm_reward, loaded.clip_obs) == (training, training, 10.0)
        np.testing.assert_array_equal(loaded.obs_rms.mean, train.obs_rms.mean)
        before = loaded.obs_rms.count
        play(loaded, 3, 0)
        assert (loaded.obs_rms.count > before) is training


def test_normalize_is_not_written_to_and_evaluation_leaves_rewards_alone():
    options = {"norm_reward": True}
    env = build_vec_env(EnvSpec("TinyCount-v0"), 1, seed=0, normalize=options, training=False)
    assert options == {"norm_reward": True}
    assert play(env, 5, 0)["rewards"][:, 0].tolist() == [1, 2, 3, 4, 5]


def test_statistics_are_copied_to_an_evaluation_env_that_records_nothing(tmp_path):
    spec = EnvSpec("Pendulum-v1")
    train = build_vec_env(spec, 2, seed=0, normalize={}, monitor=MonitorFiles(tmp_path))
    evaluation = build_vec_env(spec, 1, seed=9, normalize={}, training=False)
    play(train, 20, 0)
    sync_envs_normalization(train, evaluation)
    np.testing.assert_array_equal(train.obs_rms.mean, evaluation.obs_rms.mean)
    theirs = VecNormalize(make_vec_env("Pendulum-v1", 1))
    sync_envs_normalization(train, theirs)


def test_other_processes_give_the_same_numbers(tmp_path):
    spec = EnvSpec("PendulumNoVel-v1", wrappers=((wrappers.ActionNoiseWrapper, {"noise_std": 0.3}),))
    kwargs = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "spawn"}}
    other = play(build_vec_env(spec, 2, seed=4, monitor=MonitorFiles(tmp_path / "apart"), **kwargs), 210, 1)
    here = play(build_vec_env(spec, 2, seed=4, monitor=MonitorFiles(tmp_path / "here")), 210, 1)
    for key, value in here.items():  # SubprocVecEnv has rewards of twice the precision.
        assert value.tobytes() == other[key].astype(value.dtype).tobytes(), key
    assert rows(tmp_path / "apart" / "1.monitor.csv") == rows(tmp_path / "here" / "1.monitor.csv")


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"normalize": {"norm_obss": True}}, "unknown normalize key 'norm_obss' (x.yml): did you mean 'norm_obs'?"),
        ({"vec_env_wrappers": ((VecFrameStack, {"n_stak": 2}),)}, "did you mean 'n_stack'?"),
        ({"vec_env_wrappers": ((VecFrameStack, {}),)}, "missing argument of VecFrameStack 'n_stack'"),
        ({"frame_stack": 0}, "frame_stack must be at least 1"),
    ],
)
def test_bad_parts_are_refused_before_an_env_is_built(kwargs, text, monkeypatch):
    monkeypatch.setattr(gym, "make", None)
    with pytest.raises(ConfigError) as refused:
        build_vec_env(EnvSpec("TinyCount-v0", where="x.yml"), 1, seed=0, **kwargs)
    assert text in str(refused.value)


def test_bad_statistics_are_refused_and_the_envs_closed(tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(tiny_envs.CountEnv, "close", lambda self: closed.append(self), raising=False)
    (tmp_path / "broken.pkl").write_bytes(b"\x80\x04nothing")
    (tmp_path / "protocol.pkl").write_bytes(b"\x80\xff\x00")
    (tmp_path / "frame.pkl").write_bytes(b"\x80\x04\x95" + b"\xff" * 8 + b"x")
    (tmp_path / "text.pkl").write_bytes(b"\x8c\x02\xff\xfe.")
    build_vec_env(EnvSpec("Pendulum-v1"), 1, seed=0, normalize={}).save(str(tmp_path / "other.pkl"))
    told = {"none.pkl": "cannot be read: No such file", "other.pkl": "other"}
    told |= dict.fromkeys(("broken.pkl", "protocol.pkl", "frame.pkl", "text.pkl"), "no normalisation statistics")
    for name, text in told.items():
        with pytest.raises(ConfigError, match=text):
            build_vec_env(EnvSpec("TinyCount-v0"), 2, seed=0, stats_path=tmp_path / name)
    assert len(closed) == 2 * len(told)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="monitor files cannot be written"):
        build_vec_env(EnvSpec("TinyCount-v0"), 1, seed=0, monitor=MonitorFiles(tmp_path / "file"))


def test_monitor_keywords_become_columns(tmp_path):
    spec = EnvSpec("TinyCount-v0", monitor_kwargs={"info_keywords": ["is_success"]})
    env = build_vec_env(spec, 1, seed=0, monitor=MonitorFiles(tmp_path))
    assert isinstance(env, EpisodeRecorder)
    play(env, 5, 0)
    assert (tmp_path / "0.monitor.csv").read_text().splitlines()[1] == "r,l,t,is_success"


def test_a_vec_env_wrapper_or_normalisation_that_cannot_be_built_is_named():
    class Picky(VecEnvWrapper):
        def __init__(self, venv):
            raise AssertionError("no way")

        reset = step_wait = None

    with pytest.raises(ConfigError, match="Picky cannot be put around TinyCount-v0: AssertionError: no way"):
        build_vec_env(EnvSpec("TinyCount-v0"), 1, seed=0, vec_env_wrappers=((Picky, {}),))
    with pytest.raises(ConfigError, match="VecNormalize cannot be put around TinyCount-v0"):
        build_vec_env(EnvSpec("TinyCount-v0"), 1, seed=0, normalize={"norm_obs_keys": ["a"]})


@pytest.mark.parametrize("method", ["step", "reset"])
def test_an_error_of_an_env_names_its_index(method, tmp_path):
    env = build_vec_env(EnvSpec("TinyCount-v0"), 3, seed=0, monitor=MonitorFiles(tmp_path))
    env.reset()

    def fail(*_, **__):
        raise RuntimeError("broken")

    env.set_attr(method, fail, indices=[1])
    with pytest.raises(RuntimeError, match="broken") as caught:
        env.reset() if method == "reset" else env.step(np.zeros((3, 1), np.float32))
    assert caught.value.__notes__ == ["in env 1"]
    env.close()
