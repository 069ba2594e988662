"""Runs put together: by hand, cut, brought to the same evaluations, and left out where they do not fit."""

import logging

import numpy as np
import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.aggregates import Limits, aggregate
from lit_sb3_ray.plots.evaluations import Evaluations


def run(steps, means):
    """A run whose evaluations have two episodes each, one below and one above the mean."""
    means = np.asarray(means, float)
    return Evaluations(np.asarray(steps, float), np.stack([means - 1, means + 1], axis=1))


def test_mean_and_standard_error_are_over_runs():
    result = aggregate({"a": run([10, 20], [1, 4]), "b": run([10, 20], [3, 8])}, Limits())
    assert result.timesteps.tolist() == [10, 20]
    assert result.mean.tolist() == [2, 6]
    assert result.mean_per_eval.tolist() == [[1, 3], [4, 8]]
    assert result.std_error.tolist() == pytest.approx([1 / 2**0.5, 2 / 2**0.5])
    assert result.last_evals.tolist() == [4, 8]
    assert result.std_error_last_eval == pytest.approx(2**0.5)
    assert result.n_runs == 2


def test_shorter_runs_are_left_out_and_told(caplog):
    with caplog.at_level(logging.WARNING):
        result = aggregate({"a": run([1, 2, 3], [1, 2, 3]), "b": run([1, 2], [1, 2])}, Limits())
    assert result.n_runs == 1
    assert "b is left out: 2 evaluations, and another run has 3" in caplog.text


def test_what_is_beyond_the_last_step_is_cut():
    result = aggregate({"a": run([1, 2, 3], [1, 2, 3]), "b": run([1, 2], [5, 6])}, Limits(max_timesteps=2))
    assert result.n_runs == 2
    assert result.last_evals.tolist() == [2, 6]


def test_with_a_least_number_of_steps_runs_are_brought_to_the_coarsest(caplog):
    runs = {"fine": run(range(10, 101, 10), range(10)), "coarse": run([48, 100], [7, 9]), "broken off": run([10], [3])}
    with caplog.at_level(logging.WARNING):
        result = aggregate(runs, Limits(min_timesteps=100))
    assert result.timesteps.tolist() == [48, 100]
    assert result.mean_per_eval.tolist() == [[4, 7], [9, 9]]
    assert "broken off is left out: it ends at 10 env steps" in caplog.text
    assert aggregate(runs, Limits(max_timesteps=60, min_timesteps=100)).mean_per_eval.tolist() == [[4, 7]]


@pytest.mark.parametrize("limits", [Limits(max_timesteps=5), Limits(min_timesteps=1000), Limits(5, 20)])
def test_no_run_that_counts_is_an_error(limits):
    with pytest.raises(ConfigError, match=r"no evaluation of a lies between"):
        aggregate({"a": run([10, 20], [1, 2])}, limits)
