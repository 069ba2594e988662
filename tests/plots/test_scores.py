"""Score matrices: one column an environment, normalised where there is a range, and reference scores from the command line."""

import logging

import numpy as np
import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.reference_scores import REFERENCE_SCORES, ScoreRange, parse_ranges
from lit_sb3_ray.plots.results import Results
from lit_sb3_ray.plots.scores import score_matrices

STEPS = 100.0 * np.arange(1, 11)


def result(n_runs, scale=1.0, steps=STEPS):
    return Result(steps, scale * (np.arange(len(steps))[:, None] + 100.0 * np.arange(n_runs)[None, :]))


def results(**environments):
    return Results("results", False, {name.replace("_", "-"): found for name, found in environments.items()})


def test_runs_are_rows_and_environments_columns():
    ranges = {"A": ScoreRange(0, 10), "B": ScoreRange(-100, 100)}
    scores = score_matrices(results(A={"x": result(3), "y": result(2)}, B={"x": result(2, 2.0), "y": result(4)}), ranges)
    assert scores.environments == ("A", "B")
    assert scores.normalized
    assert {key: matrix.shape for key, matrix in scores.last.items()} == {"x": (2, 2), "y": (2, 2)}
    np.testing.assert_allclose(scores.last["x"], [[0.9, (18 + 100) / 200], [10.9, (218 + 100) / 200]])
    assert scores.positions.tolist() == [100, 500, 900, 1000]
    assert scores.in_steps
    assert scores.on_the_way["x"].shape == (2, 2, 4)
    np.testing.assert_allclose(scores.on_the_way["x"][..., -1], scores.last["x"])
    assert scores.n_runs == 2


def test_raw_scores_of_several_environments_are_told(caplog):
    with caplog.at_level(logging.WARNING):
        scores = score_matrices(results(A={"x": result(3)}, B={"x": result(3)}), {"A": ScoreRange(0, 10)})
    assert not scores.normalized
    assert "no reference score of B" in caplog.text
    caplog.clear()
    assert not score_matrices(results(A={"x": result(3)}), {}).normalized
    assert not caplog.records


def test_a_key_that_lacks_an_environment_is_left_out_and_told(caplog):
    with caplog.at_level(logging.WARNING):
        scores = score_matrices(results(A={"x": result(3), "y": result(2)}, B={"x": result(2)}), {})
    assert list(scores.last) == ["x"]
    assert "y has no result in B: left out of the aggregates" in caplog.text
    with pytest.raises(ConfigError, match="no key has them"):
        score_matrices(results(A={"x": result(3)}, B={"y": result(2)}), {})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_key_that_has_diverged_is_left_out_and_told(value, caplog):
    diverged = result(3)
    diverged.mean_per_eval[1, 2] = value
    with caplog.at_level(logging.WARNING):
        scores = score_matrices(results(A={"x": result(3), "y": diverged}), {})
    assert list(scores.last) == ["x"]
    assert "y has results in A that are not finite: left out of the aggregates" in caplog.text
    with pytest.raises(ConfigError, match="aggregates need finite results"):
        score_matrices(results(A={"y": diverged}), {})


def test_different_evaluations_are_counted_instead_of_placed(caplog):
    other = result(2, steps=STEPS[:6] * 2)
    with caplog.at_level(logging.WARNING):
        scores = score_matrices(results(A={"x": result(2), "y": other}), {})
    assert not scores.in_steps
    assert scores.positions.tolist() == [1, 5, 6]
    assert "the first 6 evaluations" in caplog.text


def test_ranges_are_read_from_the_command_line():
    assert parse_ranges(["CartPole-v1=20,500", "ALE/Pong-v5=-21,21"], "--x") == {
        "CartPole-v1": ScoreRange(20, 500),
        "ALE/Pong-v5": ScoreRange(-21, 21),
    }
    assert REFERENCE_SCORES["BipedalWalker-v3"].normalize(np.array([-100.0, 100.0, 300.0])).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("word", ["CartPole-v1", "=1,2", "a=2,1", "a=1", "a=1,x", "a=1,inf", "a=nan,1", "a=1,2,3"])
def test_what_is_no_range_is_told(word):
    with pytest.raises(ConfigError, match="give the environment and its scores for 0 and 1"):
        parse_ranges([word], "--reference-scores")
