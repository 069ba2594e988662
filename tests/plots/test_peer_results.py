"""Results files of rl_zoo3: read like this package's own, and nothing in them is run."""

import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest
from hostile import hostile_pickle

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.results_file import read_results

MEANS = np.array([[1.0, 2.0], [10.0, 20.0], [30.0, 50.0]])


def arrays(**changed):
    """A result as rl_zoo3 writes it."""
    own = {
        "timesteps": np.array([1000, 2000, 3000]),
        "mean": MEANS.mean(axis=1),
        "std_error": MEANS.std(axis=1) / np.sqrt(2),
        "last_evals": MEANS[-1],
        "std_error_last_eval": np.std(MEANS[-1]) / np.sqrt(2),
        "mean_per_eval": MEANS,
    }
    return {**own, **changed}


def content(**changed):
    table = {"headers": ["Environments", "PPO"], "value_matrix": [["", "x"], ["CartPole-v1", "40 +/- 7"]]}
    return {"CartPole-v1": {"PPO-x": arrays(**changed)}, "Acrobot-v1": {}, "results_table": table}


def write(path, value, protocol=None):
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize("name", ["theirs.pkl", "theirs.pickle", "theirs.npz", "theirs", "of them all"])
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_they_are_read_whatever_they_are_called(name, protocol, tmp_path):
    write(tmp_path / name, content(), protocol)
    found = read_results(str(tmp_path / name), "-i")
    assert (found.metric, found.median, found.keys, list(found.environments)) == (
        "results",
        False,
        ["PPO-x"],
        ["CartPole-v1", "Acrobot-v1"],
    )
    result = found.environments["CartPole-v1"]["PPO-x"]
    assert result.timesteps.tolist() == [1000, 2000, 3000]
    assert result.last_evals.tolist() == [30, 50]
    assert result.std_error_last_eval == pytest.approx(arrays()["std_error_last_eval"])


def test_the_ending_may_be_left_out_and_ours_goes_before_theirs(tmp_path):
    write(tmp_path / "r.pkl", content())
    assert read_results(str(tmp_path / "r"), "-i").keys == ["PPO-x"]
    (tmp_path / "r.npz").write_bytes(b"damaged")
    with pytest.raises(ConfigError, match=r"r\.npz is no results file of all-plots"):
        read_results(str(tmp_path / "r"), "-i")


def hostile(made):
    """Ways of hiding a command in a results file."""
    command = hostile_pickle(made)
    inner = type("Inner", (), {"__reduce__": lambda self: (os.system, (f"touch {made}",))})()
    yield command
    yield pickle.dumps({**content(), "results_table": inner})
    yield pickle.dumps(content(mean_per_eval=inner))
    yield pickle.dumps(content(mean_per_eval=np.array([[inner]], object)))
    yield pickle.dumps(content(), 0).replace(b"cnumpy\n", b"cos\n").replace(b"dtype\n", b"getcwd\n")
    yield b"\x80\x04cbuiltins\neval\n(Vopen('" + str(made).encode() + b"', 'w')\ntR."


def test_what_would_run_something_is_refused_and_not_run(tmp_path):
    made = tmp_path / "made"
    for value in hostile(made):
        write(tmp_path / "theirs.pkl", value)
        told = r"^-i .*theirs\.pkl (was refused and not run: .*all-plots .* -o|cannot be read: .*arrays of 'O8')"
        with pytest.raises(ConfigError, match=told) as caught:
            read_results(str(tmp_path / "theirs.pkl"), "-i")
        assert "\n" not in str(caught.value)
        assert "--trust" not in str(caught.value)
        assert not made.exists()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x80\x04",
        pickle.dumps(content())[:200],
        [1, 2],
        {},
        {"results_table": {}},
        {"CartPole-v1": 5},
        {"CartPole-v1": {"PPO-x": 5}},
        {"CartPole-v1": {"PPO-x": {"timesteps": [1]}}},
        {"CartPole-v1": {3: arrays()}},
        content(timesteps=np.arange(2)),
        content(mean_per_eval=np.ones(3)),
        content(mean_per_eval=np.ones((3, 0))),
        content(mean_per_eval=np.array([["a"]] * 3)),
        content(mean_per_eval={"a": 1}),
        {None: {"PPO-x": OrderedDict(arrays())}},
    ],
    ids=range(16),
)
def test_damaged_and_other_pickles_are_told_in_one_line(value, tmp_path):
    write(tmp_path / "theirs.pkl", value)
    with pytest.raises(ConfigError, match=r"^-i .*theirs\.pkl (is no results file|cannot be read)") as caught:
        read_results(str(tmp_path / "theirs.pkl"), "-i")
    assert "\n" not in str(caught.value)


def test_a_folder_and_nothing_at_all(tmp_path):
    with pytest.raises(ConfigError, match="is a folder"):
        read_results(str(tmp_path), "-i")
    with pytest.raises(ConfigError, match="there is no such file"):
        read_results(str(tmp_path / "none.pkl"), "-i")
