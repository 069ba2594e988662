"""`lit-sb3-ray report`, on studies in real storages."""

from pathlib import Path

import made_studies as made
import pytest
import yaml

from lit_sb3_ray.cli.main import main


@pytest.fixture
def folder(tmp_path):
    """A study's folder, as `tune` leaves it."""
    path = tmp_path / "logs" / "study"
    path.mkdir(parents=True)
    made.fill(made.new_study(made.journal(path / "study.log")), 12)
    (path / "study.yml").write_text(yaml.safe_dump({"storage": "study.log", "name": "s", "arguments": {}}))
    return path


def printed(capsys):
    return [Path(line) for line in capsys.readouterr().out.splitlines()]


def test_the_files_go_to_the_study_s_folder_and_the_table_beside_it_and_are_printed(folder, capsys):
    assert main(["report", str(folder)]) == 0
    paths = printed(capsys)
    assert {path.name for path in paths} >= {"report.html", "best.yml"}
    assert all(path.is_file() for path in paths)
    assert [path for path in paths if folder not in path.parents] == [path for path in paths if path.suffix == ".csv"]
    assert all(path.parent == folder.parent for path in paths if path.suffix == ".csv")


def test_another_folder_can_be_named_and_figures_left_out(folder, tmp_path, capsys):
    words = ["report", "--storage", str(folder / "study.log"), "--study-name", "s"]
    assert main([*words, "-o", str(tmp_path / "o"), "--no-optim-plots"]) == 0
    assert all((tmp_path / "o") == path.parent for path in printed(capsys))
    assert "<svg" not in (tmp_path / "o" / "report.html").read_text()


def test_a_bare_storage_is_reported_beside_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path / 'x.db'}"
    made.new_study(storage, name="my study/1")
    assert main(["report", storage]) == 0
    assert {path.parent for path in printed(capsys)} == {Path("my-study-1_report")}


def test_bad_input_is_one_line_and_exit_code_2(folder, capsys):
    (folder / "file").touch()
    for words, told in ([str(folder), "-o", str(folder / "file")], "-o"), (["nowhere/at/all"], "there is no study"):
        assert main(["report", *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert told in captured.err
        assert captured.err.count("\n") == 1


def test_an_incomplete_report_is_exit_code_1(folder, capsys):
    (folder / "report.html").mkdir()
    assert main(["report", str(folder)]) == 1
    assert {path.suffix for path in printed(capsys)} >= {".csv", ".yml"}
