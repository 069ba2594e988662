"""Results: gathered by exact names, narrowed down, merged and renamed."""

import logging

import pytest
from plotted_runs import make_runs, write_evaluations

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.aggregates import Limits
from lit_sb3_ray.plots.results import Selection, gather, merge, relabel, select


@pytest.fixture
def logs(tmp_path):
    make_runs(tmp_path / "logs", "ppo", "MountainCar-v0", [10, 20, 30])
    make_runs(tmp_path / "logs", "ppo", "MountainCarContinuous-v0", [90])
    make_runs(tmp_path / "logs", "a2c", "MountainCar-v0", [1, 2])
    return tmp_path / "logs"


def test_an_environment_has_no_part_in_one_with_a_longer_name(logs):
    results = gather({"logs": logs}, ["ppo", "a2c"], ["MountainCar-v0", "MountainCarContinuous-v0"], Limits())
    assert {env: list(found) for env, found in results.environments.items()} == {
        "MountainCar-v0": ["PPO-logs", "A2C-logs"],
        "MountainCarContinuous-v0": ["PPO-logs"],
    }
    assert results.environments["MountainCar-v0"]["PPO-logs"].last_evals.tolist() == pytest.approx([10, 20, 30])


def test_runs_with_unique_ids_and_ids_with_a_slash_are_found(tmp_path):
    write_evaluations(tmp_path / "dqn" / "ALE-Pong-v5_1_0123abcd-0000-4000-8000-0123456789ab", [1], [[1.0]])
    results = gather({"x": tmp_path}, ["DQN"], ["ALE/Pong-v5"], Limits())
    assert list(results.environments["ALE/Pong-v5"]) == ["DQN-x"]


@pytest.mark.parametrize(
    ("algos", "envs", "told"),
    [
        (["pp0"], ["MountainCar-v0"], "no runs of 'pp0' .*did you mean 'ppo'"),
        (["zzz"], ["MountainCar-v0"], "no runs of 'zzz' .*there are a2c, ppo|there are ppo, a2c"),
        (["ppo"], ["MountainCar-v1"], "no run on 'MountainCar-v1' .*did you mean 'MountainCar-v0'"),
        (["ppo"], ["Mountain"], "did you mean 'MountainCar-v0' or 'MountainCarContinuous-v0'"),
        (["a2c"], ["MountainCarContinuous-v0"], "no run on 'MountainCarContinuous-v0' .*did you mean 'MountainCar-v0'"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(algos, envs, told, logs):
    with pytest.raises(ConfigError, match=told):
        gather({"logs": logs}, algos, envs, Limits())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no folder '.*nowhere'"):
        gather({"x": tmp_path / "nowhere"}, ["ppo"], ["a"], Limits())


def test_damaged_runs_are_told_and_the_others_count(logs, caplog):
    (logs / "ppo" / "MountainCar-v0_1" / "evaluations.npz").write_bytes(b"text")
    (logs / "ppo" / "MountainCar-v0_2" / "evaluations.npz").unlink()
    with caplog.at_level(logging.WARNING):
        results = gather({"logs": logs}, ["ppo"], ["MountainCar-v0"], Limits())
    assert results.environments["MountainCar-v0"]["PPO-logs"].n_runs == 1
    assert "MountainCar-v0_1/evaluations.npz is damaged" in caplog.text
    assert "MountainCar-v0_2 has no evaluations.npz: left out" in caplog.text
    (logs / "ppo" / "MountainCar-v0_3" / "evaluations.npz").unlink()
    with pytest.raises(ConfigError, match="nothing to compare"):
        gather({"logs": logs}, ["ppo"], ["MountainCar-v0"], Limits())


def test_selection(logs):
    results = gather({"logs": logs}, ["ppo", "a2c"], ["MountainCar-v0", "MountainCarContinuous-v0"], Limits())
    assert list(select(results, Selection(skip_envs=["MountainCar-v0"])).environments) == ["MountainCarContinuous-v0"]
    assert select(results, Selection(keep_keys=["A2C-logs"], keep_envs=["MountainCar-v0"])).keys == ["A2C-logs"]
    assert select(results, Selection(skip_keys=["A2C-logs"])).keys == ["PPO-logs"]
    with pytest.raises(ConfigError, match=r"--keep-keys: there is no key 'A2C': did you mean 'A2C-logs'"):
        select(results, Selection(keep_keys=["A2C"]))
    with pytest.raises(ConfigError, match=r"--skip-envs: there is no environment 'Mountain'"):
        select(results, Selection(skip_envs=["Mountain"]))
    with pytest.raises(ConfigError, match="nothing is left"):
        select(results, Selection(keep_envs=["MountainCarContinuous-v0"], keep_keys=["A2C-logs"]))


def test_merging_adds_keys_and_environments(logs):
    first = gather({"one": logs}, ["ppo"], ["MountainCar-v0"], Limits())
    second = gather({"two": logs}, ["ppo"], ["MountainCar-v0", "MountainCarContinuous-v0"], Limits())
    merged = merge(first, second)
    assert merged.keys == ["PPO-one", "PPO-two"]
    assert list(merged.environments) == ["MountainCar-v0", "MountainCarContinuous-v0"]
    lengths = gather({"two": logs}, ["ppo"], ["MountainCar-v0"], Limits(), "ep_lengths")
    with pytest.raises(ConfigError, match="cannot be compared"):
        merge(first, lengths)


def test_other_names(logs):
    results = gather({"logs": logs}, ["ppo", "a2c"], ["MountainCar-v0"], Limits())
    assert relabel(results, ["first", "second"]).keys == ["first", "second"]
    with pytest.raises(ConfigError, match="names 1, and there are 2 keys: PPO-logs, A2C-logs"):
        relabel(results, ["first"])
    with pytest.raises(ConfigError, match="one name twice"):
        relabel(results, ["same", "same"])
