"""Journals that are not whole: what a crash leaves is gone on with, all else is refused by its line, nothing is written."""

import json
import shutil

import made_studies as made
import optuna
import pytest
import yaml

from lit_sb3_ray.cli.main import main
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.journal import check_journal
from lit_sb3_ray.tuning.storage import load_study, open_study

TRIALS = 14


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study's folder with its report."""
    folder = tmp_path_factory.mktemp("whole")
    made.fill(made.new_study(made.journal(folder / "study.log"), attributes={**made.ATTRIBUTES, "total": TRIALS}), TRIALS)
    (folder / "study.yml").write_text(yaml.safe_dump({"storage": "study.log", "name": "s", "arguments": {}}))
    assert main(["report", str(folder), "--no-optim-plots"]) == 0
    return folder


@pytest.fixture
def folder(whole, tmp_path, capsys):
    shutil.copytree(whole, tmp_path / "s")
    return tmp_path / "s"


def lines_of(folder):
    return (folder / "study.log").read_bytes().splitlines(keepends=True)


def write(folder, lines):
    (folder / "study.log").write_bytes(b"".join(lines))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def began(line):
    return json.loads(line)["op_code"] == 4


def flipped(lines):
    return [*lines[:9], lines[9][:20] + b"\x00" + lines[9][21:], *lines[10:]]


def broken_last(lines):
    return [*lines[:-1], lines[-1][:20] + b"\n"]


def joined(lines):
    """What Optuna leaves when it writes after an unfinished line."""
    return [*lines[:-1], lines[-2][:20] + lines[-1]]


def other_file(lines):
    return [b"INFO: something else\n", *lines]


def valid_but_no_entry(lines):
    return [*lines[:9], b"3\n", *lines[9:]]


def without_the_study(lines):
    return lines[1:]


def without_trials(lines):
    """Rows that trials are added by name one another no more: a line of the fifth is followed by one that names it."""
    begun = [place for place, line in enumerate(lines) if began(line)]
    attribute = json.dumps({"op_code": 8, "worker_id": "w", "trial_id": TRIALS - 1, "user_attr": {"x": 1}}).encode() + b"\n"
    return [line for place, line in enumerate(lines) if place not in begun[4:6]] + [attribute]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flipped, "line 10 is damaged"),
        (broken_last, "is damaged"),
        (joined, "is damaged"),
        (other_file, "line 1 is damaged; before it are 0 trials"),
        (valid_but_no_entry, "line 10 is no entry of a journal"),
        (without_the_study, "line 1 speaks of study 0, which no line has begun: lines are missing"),
        (without_trials, f"speaks of trial {TRIALS - 1}, which no line has begun: lines are missing; before it are 12 trials"),
    ],
)
def test_a_damaged_journal_is_refused_by_every_command_and_nothing_is_overwritten(damage, told, folder, capsys):
    write(folder, damage(lines_of(folder)))
    before = files(folder)
    for words in (["status"], ["report"], ["best"], ["stop"], ["tune", "--resume"], ["train", "--from-study"]):
        assert main([*words, str(folder)]) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1, captured.err
        assert told in captured.err
        assert captured.out == "" or words[0] == "tune"
    assert files(folder) == before


def cut(folder, keep):
    """Leaves so many whole lines and half of the next."""
    lines = lines_of(folder)
    write(folder, [*lines[:keep], lines[keep][: len(lines[keep]) // 2]])
    return keep


def test_an_unfinished_last_line_counts_for_nothing_and_reading_leaves_it(folder):
    number = len(lines_of(folder))
    cut(folder, number - 1)
    before = files(folder)
    check_journal(str(folder / "study.log"))
    assert len(load_study(str(folder / "study.log"), "s").trials) == TRIALS - 1
    assert files(folder) == before


def test_what_is_written_after_an_unfinished_line_can_be_read(folder):
    """Optuna itself writes behind it, and the journal is lost."""
    storage = str(folder / "study.log")
    whole = cut(folder, len(lines_of(folder)) - 1)
    study = load_study(storage, "s")
    study.set_user_attr("one", 1)
    study.set_user_attr("two", 2)
    again = load_study(storage, "s")
    assert (again.user_attrs["one"], again.user_attrs["two"]) == (1, 2)
    assert len(again.trials) == TRIALS - 1
    assert len(lines_of(folder)) == whole + 2
    made.journal(storage)  # Optuna's own reader.


def test_a_driver_that_is_at_work_is_read_while_it_writes(folder):
    """Another process's study sees whole lines alone, though it looks in the middle of one."""
    storage = str(folder / "study.log")
    reader, writer = load_study(storage, "s"), load_study(storage, "s")
    with (folder / "study.log").open("ab") as file:
        file.write(b'{"op_code":2,"worker_id"')
        file.flush()
        assert len(reader.trials) == TRIALS
    writer.set_user_attr("after", True)
    assert reader.user_attrs["after"]


def test_a_line_that_is_longer_than_what_is_looked_at_first_is_cut_too(folder):
    storage = str(folder / "study.log")
    with (folder / "study.log").open("ab") as file:
        file.write(b'{"op_code":2,' + b"x" * 200_000)
    open_study(storage, "s").set_user_attr("after", True)
    assert load_study(storage, "s").user_attrs["after"]


def test_an_unfinished_line_alone_is_an_empty_journal(tmp_path):
    (tmp_path / "s.log").write_bytes(b'{"op_code":0,"wor')
    assert open_study(str(tmp_path / "s.log"), "s").trials == []
    assert len(load_study(str(tmp_path / "s.log"), "s").trials) == 0


def test_a_study_that_was_deleted_and_begun_again_is_whole(tmp_path):
    storage = str(tmp_path / "s.log")
    for name in ("one", "two", "one"):
        study = open_study(storage, name)
        study.add_trial(optuna.trial.create_trial(params={}, distributions={}, value=1.0))
        if name == "one":
            optuna.delete_study(study_name="one", storage=made.journal(storage))
    check_journal(storage)
    assert len(load_study(storage, "two").trials) == 1


@pytest.mark.parametrize("words", [["report"], ["tune", "--resume"]])
def test_a_journal_that_is_shorter_than_its_report_is_refused(words, folder, capsys):
    cut(folder, len(lines_of(folder)) - 4)
    if words == ["tune", "--resume"]:
        study = load_study(str(folder / "study.log"), "s")
        study.set_user_attr("folder", str(folder))
        settings = {"algo": "ppo", "env": "CartPole-v1", "seed": 1}
        (folder / "study.yml").write_text(yaml.safe_dump({"storage": "study.log", "name": "s", "arguments": settings}))
    before = files(folder)
    assert main([*words, str(folder)]) == 2
    err = capsys.readouterr().err
    assert f"study 's' has 10 trials that are over of 10, and its report {folder}/report.html tells of 14" in err
    assert err.splitlines()[-1].startswith("lit-sb3-ray: error: ")
    assert files(folder) == before


def test_a_report_of_a_study_that_has_grown_or_of_another_is_written_over(folder, whole):
    storage = str(folder / "study.log")
    study = load_study(storage, "s")
    study.add_trial(optuna.trial.create_trial(params={}, distributions={}, value=1.0))
    assert main(["report", str(folder), "--no-optim-plots"]) == 0
    assert f'content="{TRIALS + 1} {TRIALS + 1} ' in (folder / "report.html").read_text()
    made.new_study(made.journal(storage), name="other")
    assert main(["report", "--storage", storage, "--study-name", "other", "-o", str(folder)]) == 0
    assert 'content="0 0 ' in (folder / "report.html").read_text()


def test_a_file_that_cannot_be_read_is_no_journal(tmp_path):
    (tmp_path / "s.log").mkdir()
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_study(str(tmp_path / "s.log"), "s")
