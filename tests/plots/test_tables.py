"""Tables: the same numbers as Markdown, LaTeX and CSV."""

import csv
import io

import numpy as np
import pytest

from lit_sb3_ray.plots.aggregates import Result
from lit_sb3_ray.plots.curves import Estimate
from lit_sb3_ray.plots.results import Results
from lit_sb3_ray.plots.tables import estimates_table, number, results_table


def result(*ends):
    return Result(np.array([1000.0, 2000.0]), np.array([[0.0] * len(ends), ends]))


RESULTS = Results(
    "results",
    False,
    {
        "CartPole-v1": {"PPO-a_b": result(400.0, 500.0), "A2C-a_b": result(9.5)},
        "Acrobot-v1": {"A2C-a_b": result(-80.0, -90.5)},
    },
)


def test_markdown():
    assert results_table(RESULTS).render("markdown").splitlines() == [
        "| Environments |    PPO-a_b |       A2C-a_b |",
        "| ------------ | ---------: | ------------: |",
        "| CartPole-v1  | 450 +/- 35 | 9.50 +/- 0.00 |",
        "| Acrobot-v1   |          - | -85.2 +/- 3.7 |",
    ]


def test_medians():
    table = results_table(Results("results", True, RESULTS.environments))
    assert table.rows[0] == ("CartPole-v1", "450", "9.50")


def test_latex_escapes_names():
    text = results_table(RESULTS).render("latex")
    assert text.startswith("\\begin{tabular}{lrr}\n\\hline\nEnvironments & PPO-a\\_b & A2C-a\\_b \\\\\n")
    assert "CartPole-v1 & 450 $\\pm$ 35 & 9.50 $\\pm$ 0.00 \\\\\n" in text
    assert text.endswith("\\hline\n\\end{tabular}\n")


def test_csv_has_the_numbers_in_full():
    rows = list(csv.DictReader(io.StringIO(results_table(RESULTS).render("csv"))))
    assert [(row["environment"], row["key"], row["runs"]) for row in rows] == [
        ("CartPole-v1", "PPO-a_b", "2"),
        ("CartPole-v1", "A2C-a_b", "1"),
        ("Acrobot-v1", "A2C-a_b", "2"),
    ]
    assert float(rows[2]["mean"]) == -85.25
    assert float(rows[2]["std_error"]) == pytest.approx(5.25 / 2**0.5)
    assert (rows[2]["timesteps"], float(rows[2]["min"]), float(rows[2]["max"])) == ("2000", -90.5, -80.0)


def test_estimates_have_their_intervals():
    table = estimates_table({"IQM": {"PPO|x": Estimate(0.5, 0.25, 123.4)}, "Mean": {"PPO|x": Estimate(1, 2, 3)}}, "Key")
    assert table.rows == (("PPO|x", "0.500 [0.250, 123]", "1.00 [2.00, 3.00]"),)
    assert "PPO\\|x" in table.render("markdown")
    assert table.render("csv").splitlines() == [
        "key,figure,value,low,high",
        "PPO|x,IQM,0.5,0.25,123.4",
        "PPO|x,Mean,1,2,3",
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(1234.6, "1235"), (-12.34, "-12.3"), (1.0, "1.00"), (0.0, "0.000"), (-0.1234, "-0.123")]
)
def test_numbers_have_the_decimals_that_their_size_needs(value, text):
    assert number(value) == text
