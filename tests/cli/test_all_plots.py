"""`all-plots`: table, pictures and file of runs; the same numbers as rl_zoo3's, of its runs and of this package's."""

import csv
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from plotted_runs import assert_drawn, make_runs, standard_error

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.all_plots import build_parser
from lit_sb3_ray.plots.results_file import read_results

FIELDS = ("timesteps", "mean", "std_error", "last_evals", "std_error_last_eval", "mean_per_eval")


# It does without rliable, but not with one that cannot be imported, as beside pandas 3.
THEIRS = "import sys; sys.modules['rliable'] = None; from rl_zoo3.plots import all_plots; all_plots()"


def plot(capsys, *words):
    code = cli.main(["all-plots", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def theirs(*words):
    environ = {**os.environ, "MPLBACKEND": "Agg"}
    words = [sys.executable, "-c", THEIRS, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def logs(tmp_path):
    make_runs(tmp_path / "logs", "ppo", "CartPole-v1", [300, 400, 500])
    make_runs(tmp_path / "logs", "a2c", "CartPole-v1", [200, 260])
    make_runs(tmp_path / "logs", "ppo", "ALE/Pong-v5", [-3, 18])
    make_runs(tmp_path / "logs", "ppo", "CartPoleLong-v1", [9000])
    return tmp_path / "logs"


def test_the_flags_are_those_of_rl_zoo3():
    args = build_parser().parse_args(["-a", "ppo", "-e", "x", "-f", "logs"])
    assert vars(args) == {
        "algos": ["ppo"],
        "env": ["x"],
        "exp_folders": ["logs"],
        "labels": None,
        "key": "results",
        "max_timesteps": 2_000_000,
        "min_timesteps": -1,
        "output": None,
        "median": False,
        "no_million": False,
        "no_display": False,
        "print_n_trials": False,
        "format": None,
        "table": "markdown",
    }
    words = ["-a", "x", "y", "-e", "x", "-f", "a", "-l", "A", "-k", "successes", "-max", "5", "-min", "-1", "-o", "r"]
    given = build_parser().parse_args([*words, "-median", "-print"])
    assert (given.labels, given.key, given.max_timesteps, given.min_timesteps) == (["A"], "successes", 5, -1)
    assert given.median
    assert given.print_n_trials


def test_table_pictures_and_file(logs, tmp_path, capsys):
    words = [
        "-a",
        "ppo",
        "a2c",
        "-e",
        "CartPole-v1",
        "ALE/Pong-v5",
        "-f",
        logs,
        "-l",
        "mine",
        "-o",
        tmp_path / "out" / "r",
        "-print",
    ]
    code, out, err = plot(capsys, *words)
    assert code == 0, err
    assert "CartPole-v1-PPO-mine: 3\n" in out
    spread = standard_error([300, 400, 500])
    assert re.search(rf"\| CartPole-v1 +\| +400 \+/- {spread:.0f} \| +230 \+/- {standard_error([200, 260]):.0f} \|", out)
    assert re.search(r"\| ALE/Pong-v5 +\| +7\.50 \+/- 7\.42 \| +- \|", out)
    names = ["r.csv", "r.md", "r.npz", "r.tex", "r_ALE-Pong-v5.png", "r_CartPole-v1.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert all(str(tmp_path / "out" / name) in out.splitlines() for name in names)
    for path in (tmp_path / "out").glob("*.png"):
        assert_drawn(path)
    rows = list(csv.DictReader((tmp_path / "out" / "r.csv").open()))
    assert [float(row["mean"]) for row in rows] == pytest.approx([400, 230, 7.5])
    assert (tmp_path / "out" / "r.md").read_text() in out
    assert read_results(str(tmp_path / "out" / "r"), "-i").keys == ["PPO-mine", "A2C-mine"]


def test_medians_lengths_and_other_formats(logs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["-a", "ppo", "-e", "CartPole-v1", "-f", "logs"]
    assert re.search(r"\| +400 \|", plot(capsys, *words, "-median", "--no-display")[1])
    assert plot(capsys, *words, "-k", "ep_lengths", "--no-display")[1].splitlines()[2].endswith("| 7.00 +/- 0.00 |")
    assert list(tmp_path.iterdir()) == [logs]
    code, out, _ = plot(capsys, *words, "--format", "svg", "--no-million", "--table", "latex")
    assert code == 0
    assert out.startswith(r"\begin{tabular}{lr}")
    assert out.splitlines()[-1] == "results_CartPole-v1.svg"
    assert_drawn(tmp_path / "results_CartPole-v1.svg")
    assert plot(capsys, *words, "-o", "r.pdf")[0] == 0
    assert_drawn(tmp_path / "r_CartPole-v1.pdf")


def test_several_folders(logs, tmp_path, capsys):
    make_runs(tmp_path / "more", "ppo", "CartPole-v1", [100])
    words = ["-a", "PPO", "-e", "CartPole-v1", "-f", logs, tmp_path / "more", "--no-display"]
    code, out, _ = plot(capsys, *words, "-l", "one", "two")
    assert code == 0
    assert re.match(r"\| Environments +\| +PPO-one \| +PPO-two \|", out)
    for labels, told in ((["one"], "gives 1 labels for 2 folders"), (["a", "a"], "'a' stands for two folders")):
        code, _, err = plot(capsys, *words, "-l", *labels)
        assert code == 2
        assert told in err


def test_damaged_runs_are_told_and_the_others_count(logs, capsys, caplog):
    (logs / "ppo" / "CartPole-v1_3" / "evaluations.npz").write_bytes(b"text")
    words = ["-a", "ppo", "-e", "CartPole-v1", "-f", logs, "--no-display", "-print"]
    code, out, _ = plot(capsys, *words)
    assert code == 0
    assert "CartPole-v1_3/evaluations.npz is damaged" in caplog.text
    assert f"CartPole-v1-PPO-{logs}: 2\n" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-a", "ppo", "pp0"], "no runs of 'pp0'"),
        (["-e", "Pong"], "did you mean 'ALE-Pong-v5'?"),
        (["-f", "nowhere"], "there is no folder 'nowhere'"),
        (["-k", "success"], "unknown key 'success'"),
        (["-max", "10"], "no evaluation of"),
        (["-o", "/dev/null/a"], "-o '/dev/null' cannot be written"),
        (["--format", "gif"], "unknown format 'gif'"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, told, logs, tmp_path, capsys, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    code, out, err = plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", logs, *words)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert caplog.messages == []
    assert list(tmp_path.iterdir()) == [logs]


def compared_with_rl_zoo3(logs, envs, tmp_path, capsys):
    """Both tell the same of the runs in a folder, in their tables and in their files."""
    words = ["-a", "ppo", "-e", *envs, "-f", logs, "-l", "x", "--no-display"]
    table = theirs(*words, "-o", tmp_path / "theirs")
    code, out, err = plot(capsys, *words, "-o", tmp_path / "ours")
    assert code == 0, err
    read, own = read_results(str(tmp_path / "theirs.pkl"), "-i"), read_results(str(tmp_path / "ours"), "-i")
    for env in envs:
        pair = [results.environments[env]["PPO-x"] for results in (read, own)]
        assert pair[0].timesteps.tolist() == pair[1].timesteps.tolist()
        np.testing.assert_allclose(*(np.sort(result.mean_per_eval, axis=-1) for result in pair))
    expected = pickle.loads((tmp_path / "theirs.pkl").read_bytes())  # Written by this test.
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as found:
        for env in envs:
            for field in FIELDS:
                pair = (found[f"{env}|PPO-x|{field}"], expected[env]["PPO-x"][field])
                if field in ("last_evals", "mean_per_eval"):
                    # Runs stand in the order of their numbers, in rl_zoo3's in that of the file system.
                    pair = tuple(np.sort(values, axis=-1) for values in pair)
                np.testing.assert_allclose(*pair, err_msg=field)
    pairs = [re.findall(r"(-?[\d.]+) \+/- ([\d.]+)", text) for text in (table, out)]
    assert len(pairs[0]) == len(envs)
    for (mean, error), (own_mean, own_error) in zip(*pairs, strict=True):
        # rl_zoo3 rounds to whole numbers.
        assert (float(mean), float(error)) == pytest.approx((float(own_mean), float(own_error)), abs=0.6)


@pytest.mark.slow
def test_the_same_numbers_as_rl_zoo3(tmp_path, capsys):
    make_runs(tmp_path / "logs", "ppo", "CartPole-v1", [301, 402, 503])
    make_runs(tmp_path / "logs", "ppo", "Acrobot-v1", [-101, -302])
    compared_with_rl_zoo3(tmp_path / "logs", ["CartPole-v1", "Acrobot-v1"], tmp_path, capsys)


TRAIN = ["--algo", "ppo", "--env", "CartPole-v1", "--device", "cpu", "--eval-freq", "128", "--eval-episodes", "2", "-n", "400"]


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["rl_zoo3", "lit_sb3_ray"])
def test_runs_of_both_packages_give_both_the_same(whose, tmp_path, capsys):
    logs = tmp_path / "logs"
    words = ["-f", str(logs), *TRAIN, "-params", "n_steps:64", "n_envs:2"]
    for seed in ("1", "2"):
        if whose == "rl_zoo3":
            training = [sys.executable, "-m", "rl_zoo3.train", *words, "--seed", seed]
            subprocess.run(training, capture_output=True, check=True)
        else:
            assert cli.main(["train", *words, "--seed", seed, "--verbose", "0"]) == 0
    capsys.readouterr()
    compared_with_rl_zoo3(logs, ["CartPole-v1"], tmp_path, capsys)
    code, _, err = plot(capsys, "-a", "ppo", "-e", "CartPole-v1", "-f", logs, "--no-million", "-o", tmp_path / "p")
    assert code == 0, err
    assert_drawn(tmp_path / "p_CartPole-v1.png")
