"""`plot-train`: pictures of runs made by hand, of this package's and of rl_zoo3's; rl_zoo3 draws the same of both."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from plotted_runs import assert_drawn, look_at, rising_episodes, write_monitor

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.plot_train import build_parser
from lit_sb3_ray.plots.monitor_files import read_episodes
from lit_sb3_ray.plots.training_curves import View, training_curve

TRAIN = ["--algo", "ppo", "--env", "CartPole-v1", "--device", "cpu", "--eval-freq", "-1", "--seed", "1", "-n", "400"]

# rl_zoo3 shows its picture; this tells the lines in it instead. It does without rliable, but not with one that cannot be
# imported, as beside pandas 3.
TELL_LINES = """
import json, sys
sys.modules["rliable"] = None
from matplotlib import pyplot
pyplot.show = lambda: print("LINES", json.dumps(
    {line.get_label(): [line.get_xdata().tolist(), line.get_ydata().tolist()] for line in pyplot.gca().lines}
))
from rl_zoo3.plots import plot_train
plot_train()
"""


def plot(capsys, *words):
    code = cli.main(["plot-train", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def theirs(*words):
    """What rl_zoo3 draws of runs: x and y by label."""
    environ = {**os.environ, "MPLBACKEND": "Agg"}
    words = [sys.executable, "-c", TELL_LINES, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("LINES")).removeprefix("LINES"))


@pytest.fixture
def logs(tmp_path):
    for number in (1, 2):
        write_monitor(tmp_path / "logs" / "ppo" / f"CartPole-v1_{number}", rising_episodes(120, first=50.0 * number))
    write_monitor(tmp_path / "logs" / "ppo" / "CartPoleLong-v1_1", rising_episodes(300, first=900.0))
    return tmp_path / "logs"


def test_the_flags_are_those_of_rl_zoo3():
    args = build_parser().parse_args(
        ["-a", "ppo", "-e", "a", "b", "-f", "logs", "-max", "9", "-x", "time", "-y", "length", "-w", "3"]
    )
    assert vars(args) == {
        "algo": "ppo",
        "env": ["a", "b"],
        "exp_folder": "logs",
        "figsize": [6.4, 4.8],
        "fontsize": 14,
        "max_timesteps": 9,
        "x_axis": "time",
        "y_axis": "length",
        "episode_window": 3,
        "output": None,
    }


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_a_picture_of_each_format(form, logs, tmp_path, capsys):
    path = tmp_path / "new" / f"curves.{form}"
    code, lines, err = plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", logs, "-o", path)
    assert (code, lines, err) == (0, [str(path)], "")
    assert_drawn(path)


def test_without_output_it_is_written_here(logs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--figsize", "3", "2", "--fontsize", "8", "-y", "length"]
    assert plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", "logs", *words)[:2] == (0, ["training_length.png"])
    assert look_at(tmp_path / "training_length.png")[:2] == (360, 240)


def test_it_works_without_a_display_in_a_process_of_its_own(logs, tmp_path):
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    words = [
        sys.executable,
        "-m",
        "lit_sb3_ray",
        "plot_train",
        "-a",
        "ppo",
        "-e",
        "CartPole-v1",
        "-f",
        logs,
        "-o",
        tmp_path / "a",
    ]
    subprocess.run(list(map(str, words)), env=environ, check=True, capture_output=True)
    assert_drawn(tmp_path / "a.png")


def test_runs_that_cannot_be_drawn_are_told_and_the_others_are_drawn(logs, tmp_path, capsys, caplog):
    (logs / "ppo" / "CartPole-v1_1" / "0.monitor.csv").write_text("")
    with (logs / "ppo" / "CartPole-v1_2" / "0.monitor.csv").open("a") as file:
        file.write("7.0,1")
    code, *_ = plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", logs, "-o", tmp_path / "a.png")
    assert code == 0
    assert "CartPole-v1_1/0.monitor.csv is damaged: it is empty: not drawn" in caplog.text
    assert "CartPole-v1_2/0.monitor.csv is damaged at line 123" in caplog.text
    assert_drawn(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-a", "pp0"], "did you mean 'ppo'?"),
        (["-e", "CartPole"], "did you mean 'CartPole-v1' or 'CartPoleLong-v1'?"),
        (["-f", "nowhere"], "there is no folder 'nowhere'"),
        (["-w", "500"], "has 120 episodes, fewer than the window of 500 (-w)"),
        (["-w", "0"], "argument -w/--episode-window: 0 is below 1"),
        (["-y", "success"], "tells no success"),
        (["-x", "hours"], "invalid choice: 'hours'"),
        (["-o", "/dev/null/a.png"], "-o '/dev/null' cannot be written"),
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, told, logs, tmp_path, capsys, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    code, lines, err = plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", logs, *words)
    assert (code, lines) == (2, [])
    assert told in err
    assert len(err.splitlines()) == 1
    assert caplog.messages == []
    assert list(tmp_path.iterdir()) == [logs]


def test_without_matplotlib_the_extra_is_named(logs, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", logs)
    assert code == 2
    assert "pip install 'lit-sb3-ray[plots]'" in err


@pytest.mark.slow
def test_a_run_of_this_package_is_drawn_by_both_the_same(tmp_path, capsys):
    logs = tmp_path / "logs"
    assert cli.main(["train", "-f", str(logs), *TRAIN, "-params", "n_steps:64", "n_envs:2", "--verbose", "0"]) == 0
    capsys.readouterr()
    words = ["-a", "ppo", "-e", "CartPole-v1", "-f", logs, "-w", 3]
    code, _, err = plot(capsys, *words, "-o", tmp_path / "ours.png")
    assert code == 0, err
    assert_drawn(tmp_path / "ours.png")
    x, y = theirs(*words)["CartPole-v1_1"]
    curve = training_curve(read_episodes(logs / "ppo" / "CartPole-v1_1"), "", View(window=3))
    np.testing.assert_allclose(curve.x, x)
    np.testing.assert_allclose(curve.y, y)


@pytest.mark.slow
def test_a_run_of_rl_zoo3_is_drawn(tmp_path, capsys):
    logs = tmp_path / "logs"
    words = ["-f", str(logs), *TRAIN, "-params", "n_steps:64", "n_envs:2"]
    subprocess.run([sys.executable, "-m", "rl_zoo3.train", *words], capture_output=True, check=True)
    words = ["-a", "ppo", "-e", "CartPole-v1", "-f", logs, "-w", 2, "-x", "time"]
    code, _, err = plot(capsys, *words, "-o", tmp_path / "a.png")
    assert code == 0, err
    assert_drawn(tmp_path / "a.png")
    x, y = theirs(*words)["CartPole-v1_1"]
    curve = training_curve(read_episodes(logs / "ppo" / "CartPole-v1_1"), "", View("time", window=2))
    # Hours, of which SB3 keeps a microsecond: it adds the seconds since 1970.
    np.testing.assert_allclose(curve.x, x, atol=1e-6 / 3600)
    np.testing.assert_allclose(curve.y, y)
