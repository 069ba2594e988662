"""Learning curves over seeds, from the evaluations of runs."""

import csv

import numpy as np

from lit_sb3_ray.tuning.sweeps.curves import average, draw, write_curves


def evaluations(folder, name, steps, means):
    path = folder / f"{name}.npz"
    np.savez(path, timesteps=steps, results=[[mean - 1, mean + 1] for mean in means], ep_lengths=[[1, 1]] * len(means))
    return path


def test_runs_evaluated_at_the_same_steps_are_averaged(tmp_path):
    files = [evaluations(tmp_path, n, [10, 20], [n, 10 * n]) for n in (1.0, 2.0, 6.0)]
    first, second = average(files)
    assert (first.num_timesteps, first.mean.value, first.runs) == (10, 3.0, 3)
    assert (second.num_timesteps, second.mean.value) == (20, 30.0)
    assert first.mean.interval.low == 1.0
    assert first.mean.interval.high == 6.0


def test_a_run_counts_between_its_evaluations_and_not_outside_them(tmp_path):
    files = [evaluations(tmp_path, "a", [10, 30], [0.0, 20.0]), evaluations(tmp_path, "b", [20, 40], [30.0, 50.0])]
    found = [(point.num_timesteps, point.mean.value, point.runs) for point in average([*files, tmp_path / "missing.npz"])]
    assert found == [(10, 0.0, 1), (20, 20.0, 2), (30, 30.0, 2), (40, 50.0, 1)]


def test_no_run_has_no_curve(tmp_path):
    assert average([tmp_path / "missing.npz"]) == []


def test_the_table_has_a_row_a_point(tmp_path):
    points = average([evaluations(tmp_path, n, [10], [float(n)]) for n in range(3)])
    single = average([evaluations(tmp_path, "only", [5], [7.0])])
    write_curves({("ppo", "A-v0"): points, ("a2c", "A-v0"): single}, tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [tuple(row.values()) for row in rows] == [
        ("ppo", "A-v0", "10", "1.0", "0.0", "2.0", "3"),
        ("a2c", "A-v0", "5", "7.0", "", "", "1"),
    ]


def test_a_picture_an_environment(tmp_path):
    points = average([evaluations(tmp_path, n, [10, 20], [float(n), 2.0 * n]) for n in range(3)])
    pictures = draw({("ppo", "ALE/A-v0"): points, ("a2c", "ALE/A-v0"): points, ("ppo", "B-v0"): []}, tmp_path)
    assert [picture.name for picture in pictures] == ["curves_ALE-A-v0.png"]
    assert pictures[0].read_bytes().startswith(b"\x89PNG")
