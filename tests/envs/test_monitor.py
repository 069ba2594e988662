"""Monitor files hold what SB3's Monitor writes, survive a resume with each episode once, and cost next to nothing."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import tiny_envs  # noqa: F401 (registers the tiny environments)
from lit_sb3_ray.envs.monitor import EpisodeRecorder, MonitorFiles, find_recorder, truncate_monitor_files
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.errors import ConfigError

SUCCESS = {"info_keywords": ("is_success",)}


def build(folder, n_envs=2, offsets=None, **kwargs):
    spec = EnvSpec("TinyCount-v0", monitor_kwargs=SUCCESS, **kwargs)
    return build_vec_env(spec, n_envs, seed=0, monitor=MonitorFiles(folder, offsets))


def step(env, count):
    for _ in range(count):
        env.step(np.zeros((env.num_envs, 1), np.float32))


def without_clock(path):
    _, columns, *lines = path.read_bytes().split(b"\n")
    return columns, [line.split(b",")[:2] + line.split(b",")[3:] for line in lines if line]


def test_rows_are_those_of_sb3s_monitor(tmp_path):
    theirs = make_vec_env("TinyCount-v0", 2, seed=0, monitor_dir=str(tmp_path / "sb3"), monitor_kwargs=SUCCESS)
    ours = build(tmp_path / "ours")
    for env in (theirs, ours):
        env.reset()
        step(env, 23)
        env.close()
    for index in range(2):
        name = f"{index}.monitor.csv"
        assert without_clock(tmp_path / "ours" / name) == without_clock(tmp_path / "sb3" / name)
        header = json.loads((tmp_path / "ours" / name).read_text().splitlines()[0][1:])
        assert header["env_id"] == "TinyCount-v0"
        assert abs(header["t_start"] - time.time()) < 60
    table, expected = load_results(str(tmp_path / "ours")), load_results(str(tmp_path / "sb3"))
    assert list(table.columns) == list(expected.columns)
    assert len(table) == 8
    for column in ("r", "l", "is_success"):
        assert sorted(table[column]) == sorted(expected[column])
    assert table["t"].between(0, 60).all()


def test_each_row_is_on_disk_at_once_and_the_offsets_say_how_far(tmp_path):
    env = build(tmp_path)
    env.reset()
    start = env.offsets()
    step(env, 5)
    for path in env.paths:
        assert path.stat().st_size == env.offsets()[path.name] > start[path.name]
        assert path.read_text().splitlines()[2].startswith("15.0,5,")
    env.close()
    env.close()
    assert env.offsets()["0.monitor.csv"] > start["0.monitor.csv"]


def test_nothing_that_passes_through_is_changed(tmp_path):
    plain = DummyVecEnv(EnvSpec("TinyCount-v0").factories(2, seed=0))
    plain.seed(0)
    recorded = EpisodeRecorder(DummyVecEnv(EnvSpec("TinyCount-v0").factories(2, seed=0)), tmp_path, "TinyCount-v0")
    recorded.seed(0)
    np.testing.assert_array_equal(plain.reset(), recorded.reset())
    for _ in range(12):
        results = [env.step(np.zeros((2, 1), np.float32)) for env in (plain, recorded)]
        for one, other in zip(results[0][:3], results[1][:3], strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(results[0][3], results[1][3], strict=True):
            assert one.keys() == other.keys()
            assert one.get("episode", {}).keys() == other.get("episode", {}).keys()


def test_everything_else_is_the_environments_own(tmp_path):
    base = DummyVecEnv(EnvSpec("TinyCount-v0", {"render_mode": "rgb_array"}).factories(2, seed=0))
    env = EpisodeRecorder(base, tmp_path, "TinyCount-v0")
    assert (env.num_envs, env.observation_space, env.action_space) == (2, base.observation_space, base.action_space)
    assert env.unwrapped is base
    assert env.render_mode == "rgb_array"
    assert env.get_attr("length", [1]) == [5]
    env.set_attr("mark", 3, 0)
    assert env.has_attr("mark") is False
    assert base.envs[0].mark == 3
    assert env.env_method("get_wrapper_attr", "length") == [5, 5]
    env.set_options({"offset": 7.0})
    assert env.seed(3) == [3, 4]
    assert env.reset()[:, 1].tolist() == [7.0, 7.0]
    assert env.reset_infos is base.reset_infos
    assert env.get_attr("seeds") == [[3], [4]]
    assert len(env.get_images()) == 2
    assert env.render().shape == (8, 4, 3)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = env.no_such_thing
    outer = VecNormalize(env)
    assert outer.envs is base.envs
    assert find_recorder(outer) is env
    assert find_recorder(VecNormalize(base)) is None


def test_an_episode_that_a_wrapper_cuts_short_is_no_row(tmp_path):
    from lit_sb3_ray.envs.wrappers import TruncatedOnSuccessWrapper

    env = build(tmp_path, wrappers=((TruncatedOnSuccessWrapper, {}),))
    env.reset()
    step(env, 9)
    assert len((tmp_path / "0.monitor.csv").read_text().splitlines()) == 2


def test_a_resume_cuts_later_rows_and_goes_on_in_time(tmp_path):
    env = build(tmp_path)
    env.reset()
    step(env, 12)
    offsets = json.loads(json.dumps(env.offsets()))
    kept = {path.name: path.read_bytes() for path in env.paths}
    step(env, 10)
    env.close()
    with (tmp_path / "1.monitor.csv").open("a") as file:
        file.write("3.0,")  # A row that a crash left unfinished.
    env = build(tmp_path, offsets=offsets)
    assert {path.name: path.read_bytes() for path in env.paths} == kept
    env.reset()
    step(env, 5)
    env.close()
    for path in env.paths:
        assert path.read_bytes().startswith(kept[path.name])
    table = load_results(str(tmp_path))
    assert len(table) == 6
    for _, rows in table.groupby("index"):
        assert rows["t"].is_monotonic_increasing


def test_a_resume_with_another_number_of_envs_leaves_no_row_twice(tmp_path):
    env = build(tmp_path, n_envs=2)
    env.reset()
    step(env, 5)
    offsets = env.offsets()
    env.close()
    more = build(tmp_path, n_envs=3, offsets=offsets)
    more.reset()
    step(more, 5)
    more.close()
    assert len(load_results(str(tmp_path))) == 5
    fewer = build(tmp_path, n_envs=1, offsets=offsets)
    fewer.reset()
    step(fewer, 5)
    fewer.close()
    assert len(load_results(str(tmp_path))) == 3
    assert not (tmp_path / "2.monitor.csv").exists()


def test_files_that_lost_bytes_keep_their_whole_rows(tmp_path, caplog):
    env = build(tmp_path, n_envs=3)
    env.reset()
    step(env, 10)
    offsets = env.offsets()
    env.close()
    first = tmp_path / "0.monitor.csv"
    first.write_bytes(first.read_bytes()[:-3])
    (tmp_path / "1.monitor.csv").unlink()
    (tmp_path / "2.monitor.csv").write_bytes(b'#{"t_st')
    env = build(tmp_path, n_envs=3, offsets=offsets)
    env.reset()
    step(env, 5)
    env.close()
    assert caplog.text.count("has lost episodes") == 3
    assert [len(path.read_text().splitlines()) for path in env.paths] == [4, 3, 3]
    load_results(str(tmp_path))


def test_a_file_that_is_no_monitor_file_is_not_appended_to(tmp_path):
    (tmp_path / "0.monitor.csv").write_text("something\nelse\n")
    with pytest.raises(ConfigError, match="is no monitor file"):
        build(tmp_path, n_envs=1, offsets={"0.monitor.csv": 15})


def test_truncation_leaves_other_files_alone(tmp_path):
    (tmp_path / "progress.csv").write_text("a\n")
    (tmp_path / "7.monitor.csv").write_text("x\n")
    truncate_monitor_files(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["progress.csv"]


def test_a_step_costs_next_to_nothing(tmp_path):
    """The recorder's own share of a step is below 5 microseconds: less than a tenth of CartPole's."""
    base = build_vec_env(EnvSpec("CartPole-v1"), 8, seed=0)

    class Still(DummyVecEnv):
        def step_wait(self):
            return self.result

    base.reset()
    still = Still(EnvSpec("CartPole-v1").factories(8, seed=0))
    still.result = base.step(np.zeros(8, int))
    recorded = EpisodeRecorder(still, tmp_path, "CartPole-v1")
    actions = np.zeros(8, int)

    def fastest(env):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                env.step(actions)
            times.append((time.perf_counter() - start) / 200)
        return min(times)

    assert fastest(recorded) - fastest(still) < 5e-6
