"""`plot-from-file`: every picture and table of results files, and what is refused."""

import csv
import os
import pickle

import numpy as np
import pytest
from plotted_runs import assert_drawn, make_runs

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.plot_from_file_parser import build_parser

RANGES = ["--reference-scores", "CartPole-v1=20,500", "Acrobot-v1=-500,-80"]


def plot(capsys, *words):
    code = cli.main(["plot-from-file", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def results(tmp_path, capsys):
    make_runs(tmp_path / "logs", "ppo", "CartPole-v1", [300, 400, 480, 500])
    make_runs(tmp_path / "logs", "ppo", "Acrobot-v1", [-90, -100, -120])
    make_runs(tmp_path / "logs", "a2c", "CartPole-v1", [200, 260, 310])
    make_runs(tmp_path / "logs", "a2c", "Acrobot-v1", [-200, -260, -95])
    words = ["-a", "ppo", "a2c", "-e", "CartPole-v1", "Acrobot-v1", "-f", str(tmp_path / "logs"), "-l", "x"]
    assert cli.main(["all-plots", *words, "-o", str(tmp_path / "results"), "--no-display"]) == 0
    capsys.readouterr()
    return tmp_path / "results"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_flags_are_those_of_rl_zoo3():
    assert vars(build_parser().parse_args(["-i", "r"])) == {
        "input": "r",
        "skip_envs": [],
        "keep_envs": [],
        "skip_keys": [],
        "keep_keys": [],
        "no_million": False,
        "skip_timesteps": False,
        "output": None,
        "format": None,
        "legend_loc": "best",
        "figsize": [6.4, 4.8],
        "fontsize": 14,
        "labels": None,
        "boxplot": False,
        "rliable": False,
        "versus": False,
        "iqm": False,
        "ci_size": 0.95,
        "latex": False,
        "merge": [],
        "reference_scores": [],
        "table": "markdown",
    }
    words = ["-i", "r", "-skip", "a", "-o", "x", "-loc", "right", "-l", "k", "-b", "-r", "-vs", "-iqm", "-ci", "0.9", "-latex"]
    args = build_parser().parse_args(words)
    assert (args.skip_envs, args.legend_loc, args.labels, args.ci_size) == (["a"], "right", ["k"], 0.9)
    assert all((args.boxplot, args.rliable, args.versus, args.iqm, args.latex))


def test_curves_and_bars_here_by_default(results, tmp_path, capsys, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, out, err = plot(capsys, "-i", "../results")
    assert (code, err) == (0, "")
    assert names(tmp_path / "here") == ["results.svg", "results_curve_Acrobot-v1.svg", "results_curve_CartPole-v1.svg"]
    assert out.splitlines()[0].split() == ["|", "Environments", "|", "PPO-x", "|", "A2C-x", "|"]
    for path in (tmp_path / "here").iterdir():
        assert_drawn(path)


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_everything(form, results, tmp_path, capsys):
    words = ["-i", results, "-o", tmp_path / "out" / f"r.{form}", "-b", "-r", "-vs", "-iqm", *RANGES]
    code, out, err = plot(capsys, *words)
    assert (code, err) == (0, "")
    pictures = [
        *(f"r.{form}", f"r_boxplot.{form}", f"r_curve_Acrobot-v1.{form}", f"r_curve_CartPole-v1.{form}"),
        *(f"r_efficiency.{form}", f"r_improvement.{form}", f"r_metrics.{form}", f"r_profiles.{form}"),
    ]
    tables = [f"r{what}{suffix}" for what in ("", "_improvement", "_metrics") for suffix in (".csv", ".md", ".tex")]
    assert names(tmp_path / "out") == sorted(pictures + tables)
    assert all(str(tmp_path / "out" / name) in out.splitlines() for name in pictures + tables)
    for name in pictures:
        assert_drawn(tmp_path / "out" / name)
    rows = {(row["key"], row["figure"]): row for row in csv.DictReader((tmp_path / "out" / "r_metrics.csv").open())}
    scores = np.array([[280, 380, 460], [410, 400, 380]]) / np.array([[480], [420]])
    assert float(rows["PPO-x", "Mean"]["value"]) == pytest.approx(scores.mean())
    assert float(rows["PPO-x", "IQM"]["value"]) == pytest.approx(np.sort(scores.ravel())[1:-1].mean())
    assert float(rows["PPO-x", "Optimality Gap"]["value"]) == pytest.approx(1 - scores.mean())
    assert float(rows["PPO-x", "IQM"]["low"]) < float(rows["PPO-x", "IQM"]["value"]) < float(rows["PPO-x", "IQM"]["high"])
    (row,) = csv.DictReader((tmp_path / "out" / "r_improvement.csv").open())
    assert (row["pair"], float(row["value"])) == ("PPO-x > A2C-x", pytest.approx((8 / 9 + 7 / 9) / 2))


def test_raw_scores_have_no_optimality_gap(results, tmp_path, capsys, caplog):
    words = ["-i", results, "-o", tmp_path / "r", "-r", "--skip-timesteps"]
    code, out, err = plot(capsys, *words, "--keep-envs", "CartPole-v1")
    assert (code, err) == (0, "")
    assert "Optimality Gap" not in out
    assert plot(capsys, *words)[0] == 0
    assert "no reference score of CartPole-v1, Acrobot-v1" in caplog.text


def test_choosing_renaming_and_merging(results, tmp_path, capsys):
    make_runs(tmp_path / "more", "sac", "CartPole-v1", [1, 2])
    words = ["-a", "sac", "-e", "CartPole-v1", "-f", str(tmp_path / "more"), "-l", "y", "--no-display"]
    assert cli.main(["all-plots", *words, "-o", str(tmp_path / "more")]) == 0
    capsys.readouterr()
    words = ["-i", results, "--merge", f"{tmp_path / 'more'}.npz", "-skip", "Acrobot-v1", "--skip-keys", "A2C-x"]
    code, out, _ = plot(
        capsys, *words, "-l", "first", "second", "--skip-timesteps", "-o", tmp_path / "m.png", "--table", "csv"
    )
    assert code == 0
    rows = list(csv.DictReader(out.split("\n\n")[0].splitlines()))
    assert [(row["environment"], row["key"], row["runs"]) for row in rows] == [
        ("CartPole-v1", "first", "4"),
        ("CartPole-v1", "second", "2"),
    ]
    assert_drawn(tmp_path / "m.png")


def test_one_run_tells_no_interval(tmp_path, capsys, caplog):
    make_runs(tmp_path / "logs", "ppo", "CartPole-v1", [300])
    words = ["-a", "ppo", "-e", "CartPole-v1", "-f", str(tmp_path / "logs"), "-l", "x", "--no-display"]
    assert cli.main(["all-plots", *words, "-o", str(tmp_path / "r")]) == 0
    capsys.readouterr()
    assert plot(capsys, "-i", tmp_path / "r", "-r", "-o", tmp_path / "p.png", *RANGES)[0] == 0
    assert "intervals over fewer than 3 runs say little" in caplog.text
    code, _, err = plot(capsys, "-i", tmp_path / "r", "-vs", "-o", tmp_path / "p.png", *RANGES)
    assert code == 2
    assert "--versus compares two keys or more, and there is only PPO-x" in err


class Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-i", "nothing"], "-i 'nothing': there is no such file"),
        (["-i", ""], "-i '': there is no such file"),
        (["-i", "."], "-i '.' is a folder"),
        (["--figsize", "0.1", "3"], "--figsize 0.1 3"),
        (["-i", "theirs.pkl"], "-i theirs.pkl was refused and not run: it holds posix.mkdir"),
        (["-i", "theirs"], "-i theirs.pkl was refused and not run"),
        (["--merge", "theirs.pkl"], "--merge theirs.pkl was refused and not run"),
        (["--keep-envs", "CartPole"], "--keep-envs: there is no environment 'CartPole': did you mean 'CartPole-v1'?"),
        (["--skip-keys", "PPO"], "--skip-keys: there is no key 'PPO': did you mean 'PPO-x'?"),
        (["-l", "one"], "--labels names 1, and there are 2 keys"),
        (["-loc", "top"], "unknown place of a legend 'top'"),
        (["-ci", "95"], "'95' is not between 0 and 1"),
        (["--format", "gif"], "unknown format 'gif'"),
        (["--reference-scores", "CartPole-v1"], "give the environment and its scores for 0 and 1"),
        (["-o", "/dev/null/a"], "-o '/dev/null' cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, told, results, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs.pkl").write_bytes(pickle.dumps(Runs(tmp_path / "victim")))
    before = names(tmp_path)
    code, out, err = plot(capsys, "-i", results, *words)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert names(tmp_path) == before


def test_without_rliable_the_extra_is_named(results, capsys, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rliable" else real(name))
    code, out, err = plot(capsys, "-i", results, "-r")
    assert (code, out) == (2, "")
    assert "rliable" in err
    assert "pip install 'lit-sb3-ray[plots]'" in err
