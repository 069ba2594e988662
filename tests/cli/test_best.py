"""`lit-sb3-ray best`, on a study in a real journal."""

import subprocess
import sys

import made_studies as made
import pytest
import yaml

from lit_sb3_ray.cli.main import main


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "study.log"
    made.fill(made.new_study(made.journal(path)), 12)
    return str(path)


def test_the_best_trial_is_printed_as_a_file_for_conf_file(journal, tmp_path):
    done = subprocess.run([sys.executable, "-m", "lit_sb3_ray", "best", journal], capture_output=True, text=True, check=True)
    assert list(yaml.safe_load(done.stdout)) == ["CartPole-v1"]
    assert done.stdout.startswith("# Trial ")
    assert done.stderr == ""
    file = tmp_path / "best.yml"
    file.write_text(done.stdout)
    words = ["train", "--algo", "ppo", "--env", "CartPole-v1", "--conf-file", str(file)]
    assert main([*words, "-n", "300", "-f", str(tmp_path), "--device", "cpu", "--verbose", "0"]) == 0


def test_several_are_saved_as_a_list(journal, tmp_path, capsys):
    file = tmp_path / "new" / "best.yml"
    assert main(["best", journal, "-k", "3", "--save", str(file)]) == 0
    assert len(yaml.safe_load(file.read_text())) == 3
    assert capsys.readouterr().out.startswith(f"{file}: trials ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "no study 'nowhere'"),
        ([], "name the study either by its folder or by --storage"),
        (["{journal}", "-k", "0"], "0 is below 1"),
        (["{journal}", "--study-name", "t"], "unknown study 't'"),
        (["{journal}", "--save", "/dev/null/x"], "--save"),
        (["{journal}", "--save", "."], "--save '.' is a folder: name a file"),
        (["{journal}", "--sav", "x", "--nmae", "s"], "unrecognized arguments: --nmae s"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, told, journal, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["best", *[word.format(journal=journal) for word in words]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert captured.err.count("\n") == 1


def test_a_study_without_a_complete_trial_is_exit_code_2(tmp_path, capsys):
    made.new_study(made.journal(tmp_path / "s.log")).add_trial(made.failed({}))
    assert main(["best", str(tmp_path / "s.log")]) == 2
    assert "no best trial yet" in capsys.readouterr().err
