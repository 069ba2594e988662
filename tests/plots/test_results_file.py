"""Results files: read back as they were, open to numpy, and nothing in them is run."""

import json
import os
import pickle

import numpy as np
import pytest
from plotted_runs import make_runs

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.aggregates import Limits
from lit_sb3_ray.plots.results import gather
from lit_sb3_ray.plots.results_file import read_results, write_results


class Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def results(tmp_path):
    make_runs(tmp_path / "logs", "ppo", "ALE/Pong-v5", [10, 20, 31])
    make_runs(tmp_path / "logs", "ppo", "CartPole-v1", [500])
    return gather({"logs/one": tmp_path / "logs"}, ["ppo"], ["ALE/Pong-v5", "CartPole-v1"], Limits())


def test_they_come_back_as_they_were(results, tmp_path):
    write_results(results, tmp_path / "r.npz")
    for name in ("r.npz", "r"):
        found = read_results(str(tmp_path / name), "-i")
        assert (found.metric, found.median, found.keys) == ("results", False, ["PPO-logs/one"])
        assert list(found.environments) == list(results.environments)
        for env in results.environments:
            before, after = results.environments[env]["PPO-logs/one"], found.environments[env]["PPO-logs/one"]
            np.testing.assert_array_equal(before.timesteps, after.timesteps)
            np.testing.assert_array_equal(before.mean_per_eval, after.mean_per_eval)


def test_numpy_opens_them_without_pickles(results, tmp_path):
    write_results(results, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as file:
        index = json.loads(str(file["index"]))
        assert index["environments"]["ALE/Pong-v5"] == ["PPO-logs/one"]
        names = {name.rpartition("|")[2] for name in file.files} - {"index"}
        assert names == {"timesteps", "mean", "std_error", "last_evals", "std_error_last_eval", "mean_per_eval"}
        assert file["ALE/Pong-v5|PPO-logs/one|last_evals"].tolist() == pytest.approx([10, 20, 31])
        assert float(file["ALE/Pong-v5|PPO-logs/one|std_error_last_eval"]) == pytest.approx(np.std([10, 20, 31]) / 3**0.5)


def test_a_pickle_under_another_name_runs_nothing(results, tmp_path):
    victim = tmp_path / "victim"
    path = tmp_path / "r.npz"
    path.write_bytes(pickle.dumps(Runs(victim)))
    with pytest.raises(ConfigError, match=r"r\.npz was refused and not run: it holds posix\.mkdir"):
        read_results(str(path), "-i")
    write_results(results, path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["CartPole-v1|PPO-logs/one|mean_per_eval"] = np.array([[Runs(victim)]], dtype=object)
    np.savez(path, **arrays)
    with pytest.raises(ConfigError, match="no results file of all-plots"):
        read_results(str(path), "-i")
    assert not victim.exists()


def test_what_is_damaged_or_none_is_one_line(results, tmp_path):
    path = tmp_path / "r.npz"
    with pytest.raises(ConfigError, match=r"-i '.*r': there is no such file"):
        read_results(str(tmp_path / "r"), "-i")
    write_results(results, path)
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    damaged = [whole[:100], b"", b"text"]
    for change in (
        {"index": np.array("no json")},
        {"index": np.array(json.dumps({"format": "another"}))},
        {"index": np.array(json.dumps([1]))},
        {"CartPole-v1|PPO-logs/one|mean_per_eval": np.ones((1, 1))},
        {"CartPole-v1|PPO-logs/one|timesteps": np.array(["a"])},
    ):
        np.savez(path, **{**arrays, **change})
        damaged.append(path.read_bytes())
    np.savez(path, timesteps=np.ones(3))
    damaged.append(path.read_bytes())
    np.save(tmp_path / "one.npy", np.ones(3))
    damaged.append((tmp_path / "one.npy").read_bytes())
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"r\.npz is (no results file|of the format)") as caught:
            read_results(str(path), "-i")
        assert "\n" not in str(caught.value)
