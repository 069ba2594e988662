"""Evaluations of a run: each array, what is damaged in one line, and nothing unpickled."""

import os

import numpy as np
import pytest
from plotted_runs import write_evaluations

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.evaluations import read_evaluations


class Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_each_array_is_read_by_its_key(tmp_path):
    write_evaluations(tmp_path, [10, 20], [[1, 3], [5, 7]], successes=np.array([[True, False], [True, True]]))
    found = read_evaluations(tmp_path)
    assert found.timesteps.tolist() == [10, 20]
    assert found.values.tolist() == [[1, 3], [5, 7]]
    assert read_evaluations(tmp_path, "successes").values.tolist() == [[1, 0], [1, 1]]
    assert read_evaluations(tmp_path, "ep_lengths").values.tolist() == [[7, 7], [7, 7]]
    assert found.cut(15).timesteps.tolist() == [10]
    assert found.resampled(np.array([9.0, 14.0, 99.0])).values[:, 0].tolist() == [1, 1, 5]


def test_an_unknown_key_is_told_with_the_nearest(tmp_path):
    write_evaluations(tmp_path, [10], [[1]])
    with pytest.raises(ConfigError, match=r"unknown key 'result' .*: did you mean 'results'"):
        read_evaluations(tmp_path, "result")
    with pytest.raises(ConfigError, match="known: ep_lengths, results"):
        read_evaluations(tmp_path, "zzz")


def test_pickled_objects_are_refused_unread(tmp_path):
    victim = tmp_path / "victim"
    write_evaluations(tmp_path, [10], [[1]])
    np.savez(tmp_path / "evaluations.npz", timesteps=np.array([10]), results=np.array([Runs(victim)], dtype=object))
    with pytest.raises(ConfigError, match=r"evaluations.npz is damaged: .*allow_pickle=False"):
        read_evaluations(tmp_path)
    assert not victim.exists()


@pytest.mark.parametrize(
    "arrays",
    [
        {"timesteps": [1, 2], "results": [[1.0]]},
        {"timesteps": [2, 1], "results": [[1.0], [2.0]]},
        {"timesteps": [1, np.nan], "results": [[1.0], [2.0]]},
        {"timesteps": [1], "results": [["x"]]},
        {"results": [[1.0]]},
    ],
)
def test_arrays_that_do_not_fit_are_damage(arrays, tmp_path):
    np.savez(tmp_path / "evaluations.npz", **{name: np.array(value) for name, value in arrays.items()})
    with pytest.raises(ConfigError, match="is damaged") as caught:
        read_evaluations(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_no_archive_or_cut_is_damage(tmp_path):
    with pytest.raises(ConfigError, match=r"has no evaluations\.npz"):
        read_evaluations(tmp_path)
    write_evaluations(tmp_path, range(50), np.ones((50, 4)))
    whole = (tmp_path / "evaluations.npz").read_bytes()
    for content in (whole[:200], whole[:-30], b"", b"text"):
        (tmp_path / "evaluations.npz").write_bytes(content)
        with pytest.raises(ConfigError, match="is damaged"):
            read_evaluations(tmp_path)
    write_evaluations(tmp_path, [], np.ones((0, 4)))
    with pytest.raises(ConfigError, match="no evaluation yet"):
        read_evaluations(tmp_path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "evaluations.npz", timesteps=np.arange(2), results=np.zeros((2, 2**21)))
    with pytest.raises(ConfigError, match=r"'results\.npy' in it would unpack to 33,554,\d+ bytes"):
        read_evaluations(tmp_path)


@pytest.mark.parametrize("content", [b"", b"text", b"\x93NUMPY", b"\x80\x04."])
def test_no_archive_is_told_without_a_word_on_reading_pickles(tmp_path, content):
    (tmp_path / "evaluations.npz").write_bytes(content)
    with pytest.raises(ConfigError, match=r"evaluations\.npz is damaged: it is no archive of numpy's$"):
        read_evaluations(tmp_path)
