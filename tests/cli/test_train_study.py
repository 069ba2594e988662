"""`train -optimize` carries a study out, and `train` takes hyperparameters from one."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import yaml

from lit_sb3_ray.cli import main as cli

A2C = ["train", "--algo", "a2c", "--device", "cpu", "--num-threads", "1", "--eval-episodes", "2", "--seed", "3"]
STUDY = ["--storage", "deep/study.log", "--study-name", "s"]


@pytest.fixture(scope="module")
def finished(ray_instance, tmp_path_factory):
    """A finished study of two trials: its folder, and what it has printed."""
    folder, out = tmp_path_factory.mktemp("study"), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert cli.main([*A2C, *STUDY, "-optimize", "--n-trials", "2", "-n", "300", "--pruner", "nop"]) == 0
    return folder, out.getvalue().splitlines()


@pytest.fixture
def study(finished, monkeypatch):
    """What the study has printed; the test runs in its folder."""
    monkeypatch.chdir(finished[0])
    return finished[1]


def test_a_study_ends_with_its_best_trial_and_its_path(study):
    assert study[0] == "Study of a2c on CartPole-v1, seed 3"
    assert re.fullmatch(r"Best trial: [01], value \d+\.\d\d", study[1])
    assert any(re.fullmatch(r"  learning_rate: \d.*", line) for line in study)
    (table,) = (line for line in study if line.endswith(".csv"))
    assert Path(table).is_file()
    assert Path(study[-1]).is_dir()
    assert Path(advised(study)).is_file()
    assert [path.name for path in Path("logs").iterdir()] == ["a2c"]


def advised(study):
    """The file that the command says to train with."""
    train = "Train with it: lit-sb3-ray train --algo a2c --env CartPole-v1 -n 500000 --conf-file "
    (file,) = (line.removeprefix(train) for line in study if line.startswith(train))
    return file


def test_the_file_of_the_best_trial_trains(study, capsys):
    config = advised(study)
    assert cli.main([*A2C, "--conf-file", config]) == 0
    run = Path(capsys.readouterr().out.splitlines()[-1])
    entry = yaml.safe_load(Path(config).read_text())["CartPole-v1"]
    saved = yaml.safe_load((run / "CartPole-v1" / "config.yml").read_text())
    assert saved == entry
    assert saved["n_timesteps"] == 300


@pytest.mark.parametrize("number", [0, 1])
def test_a_trial_is_taken_by_its_number(study, number, capsys):
    assert cli.main([*A2C, *STUDY, "--trial-id", str(number), "-n", "300"]) == 0
    saved = yaml.safe_load((Path(capsys.readouterr().out.splitlines()[-1]) / "CartPole-v1" / "config.yml").read_text())
    rates = [float(value) for value in re.findall(r"learning_rate: (\S+)", "\n".join(study))]
    is_best = study[1].startswith(f"Best trial: {number},")
    assert (saved["learning_rate"] in rates) is is_best


def test_without_a_number_it_is_the_best(study, capsys):
    assert cli.main([*A2C, *STUDY, "-n", "300"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split(" +/- ")[0].split()[-1] == study[1].split()[-1]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([*STUDY, "--trial-id", "2"], "--trial-id 2: no such trial"),
        (["--storage", "deep/study.log", "--study-name", "z"], "unknown study 'z'"),
        (["--storage", "deep/study.log"], "--storage and --study-name"),
        (["--study-name", "s"], "--storage and --study-name"),
        (["--storage", "none.log", "--study-name", "s"], "no such file"),
        (["-optimize", *STUDY, "--trial-id", "0"], "--trial-id"),
        (["-optimize", "--n-trials", "0"], "argument --n-trials: 0 is below 1"),
        (["-optimize", "--env", "Pendulum-v1", "--algo", "dqn", "-n", "100"], "dqn on Pendulum-v1"),
        (["-optimize", "--sampler", "tpee"], "invalid choice: 'tpee'"),
    ],
)
def test_bad_input_is_one_line_and_code_2(study, words, part, capsys):
    assert cli.main([*A2C, *words]) == 2
    err = capsys.readouterr().err.splitlines()
    assert part in err[-1]
    assert err[-1].startswith("lit-sb3-ray: error: ")


def test_a_dry_run_of_a_study_tells_its_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*A2C, "-optimize", "--dry-run"]) == 0
    assert "logs/a2c/CartPole-v1_study_<next number>/best.yml" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
