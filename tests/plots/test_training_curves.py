"""Training curves: SB3's own rolling mean, over each axis; runs that cannot be shown are told."""

import logging

import numpy as np
import pytest
from plotted_runs import rising_episodes, write_monitor
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.results_plotter import X_EPISODES, X_TIMESTEPS, X_WALLTIME, ts2xy, window_func

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.monitor_files import read_episodes
from lit_sb3_ray.plots.training_curves import View, training_curve, training_curves

AXES = {"steps": X_TIMESTEPS, "episodes": X_EPISODES, "time": X_WALLTIME}


@pytest.mark.parametrize("axis", list(AXES))
@pytest.mark.parametrize("window", [1, 7, 50])
def test_it_is_the_rolling_mean_of_sb3(axis, window, tmp_path):
    generator = np.random.default_rng(1)
    rows = [(float(generator.normal()), int(generator.integers(1, 30)), number + 0.5) for number in range(50)]
    write_monitor(tmp_path, rows)
    table = load_results(str(tmp_path))
    x, y = window_func(ts2xy(table, AXES[axis])[0], np.array(table.r), window, np.mean)
    curve = training_curve(read_episodes(tmp_path), "run", View(axis, "reward", window))
    np.testing.assert_allclose(curve.x, x)
    np.testing.assert_allclose(curve.y, y)


def test_episodes_beyond_the_last_step_are_left_out(tmp_path):
    write_monitor(tmp_path, rising_episodes(10, length=10))
    curve = training_curve(read_episodes(tmp_path), "run", View(window=2, max_timesteps=50))
    assert curve.x.tolist() == [20, 30, 40, 50]
    assert curve.y.tolist() == [0.5, 1.5, 2.5, 3.5]
    lengths = training_curve(read_episodes(tmp_path), "run", View(y_axis="length", window=10))
    assert (lengths.x.tolist(), lengths.y.tolist()) == ([100], [10])


def test_success_rates(tmp_path):
    write_monitor(tmp_path, [(0, 5, t, t > 2) for t in range(4)], keywords=("is_success",))
    curve = training_curve(read_episodes(tmp_path), "run", View(y_axis="success", window=4))
    assert curve.y.tolist() == [0.25]


def test_a_run_that_cannot_be_shown_is_told_and_the_others_are_drawn(tmp_path, caplog):
    runs = [tmp_path / name for name in ("long", "short", "none")]
    write_monitor(runs[0], rising_episodes(20))
    write_monitor(runs[1], rising_episodes(5))
    runs[2].mkdir()
    with caplog.at_level(logging.WARNING):
        assert [curve.label for curve in training_curves(runs, View(window=10))] == ["long"]
    assert "short has 5 episodes, fewer than the window of 10 (-w): not drawn" in caplog.text
    assert "no monitor file" in caplog.text


def test_nothing_to_show_is_an_error(tmp_path):
    write_monitor(tmp_path, rising_episodes(20))
    with pytest.raises(ConfigError, match=r"nothing to draw: .* has 20 episodes, fewer than the window of 100"):
        training_curves([tmp_path], View())
    with pytest.raises(ConfigError, match="tells no success"):
        training_curves([tmp_path], View(y_axis="success", window=1))
    with pytest.raises(ConfigError, match="0 episodes within 5 env steps"):
        training_curves([tmp_path], View(window=1, max_timesteps=5))
