"""Finding a study by its folder, its storage, or a storage and a name."""

import shutil

import made_studies as made
import pytest
import yaml

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.locate import find_study, locate_study


def sqlite(path):
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Study folders `a` (journal), `b` (SQLite) and `c` (in memory); a journal `two.log` with two studies."""
    tmp_path = tmp_path_factory.mktemp("home")
    for name, storage in {"a": "study.log", "b": "sqlite:///study.db", "c": None}.items():
        folder = tmp_path / "logs" / name
        folder.mkdir(parents=True)
        (folder / "study.yml").write_text(yaml.safe_dump({"storage": storage, "name": f"study {name}", "arguments": {}}))
    logs = tmp_path / "logs"
    made.new_study(made.journal(logs / "a" / "study.log"), "study a")
    made.new_study(sqlite(logs / "b" / "study.db"), "study b")
    for name in ("one", "two"):
        made.new_study(made.journal(tmp_path / "two.log"), name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.log").touch()
    (tmp_path / "text.db").write_text("no database, but a text that is longer than the head of one" * 10)
    return tmp_path


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("part", ["", "study.yml"])
def test_a_folder_leads_to_its_study_wherever_one_stands(home, name, part, monkeypatch):
    folder = home / "logs" / name
    found = locate_study(str(folder / part))
    assert (found.study.study_name, found.folder) == (f"study {name}", folder)
    monkeypatch.chdir(folder.parent)
    assert find_study(f"{name}/{part}").study_name == f"study {name}"


def test_a_moved_folder_is_still_its_study(home, tmp_path):
    shutil.copytree(home / "logs" / "a", tmp_path / "moved")
    assert find_study(str(tmp_path / "moved")).study_name == "study a"


def test_a_storage_leads_to_its_only_study_or_to_the_named_one(home):
    journal, database = str(home / "logs" / "a" / "study.log"), sqlite(home / "logs" / "b" / "study.db")
    assert find_study(journal).study_name == "study a"
    assert find_study(database).study_name == "study b"
    assert find_study(None, database).study_name == "study b"
    assert find_study(None, str(home / "two.log"), "two").study_name == "two"
    assert locate_study(str(home / "two.log"), None, "one").folder is None


@pytest.mark.parametrize(
    ("where", "storage", "name", "told"),
    [
        (None, None, None, "name the study either by its folder or by --storage"),
        ("logs/a", "x.log", None, "name the study either by its folder or by --storage"),
        ("logs/a", None, "study b", "unknown study 'study b'"),
        ("logs/d", None, None, "unknown study 'd' (in 'logs'): "),
        ("lgos", None, None, "unknown study 'lgos' (in '.'): did you mean 'logs'?"),
        ("no/where", None, None, "there is no study 'no/where': no such folder, and none beside it"),
        ("logs", None, None, "'logs' is no study's folder; studies in it are logs/a, logs/b, logs/c"),
        ("empty", None, None, "'empty' is no study's folder: it has no study.yml"),
        ("logs/c", None, None, "names no storage"),
        ("logs/b/study.db", None, None, "is it sqlite:///logs/b/study.db?"),
        ("x.log", None, None, "'x.log': there is no such file"),
        (None, "sqlite:///x.db", None, "there is no such file"),
        (None, "two.log", None, "has 2 studies, name one with --study-name: one, two"),
        ("two.log", None, "tow", "did you mean 'two'?"),
        ("empty.log", None, None, "has no study"),
        ("sqlite:///text.db", None, None, "cannot be opened"),
        ("nosuch://x", None, None, "cannot be opened"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(home, where, storage, name, told, monkeypatch):
    monkeypatch.chdir(home)
    before = sorted(home.rglob("*"))
    with pytest.raises(ConfigError) as error:
        find_study(where, storage, name)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(home.rglob("*")) == before, "looking has made a file"


def test_a_broken_study_file_is_told_with_its_name(tmp_path):
    (tmp_path / "study.yml").write_text("storage: [")
    with pytest.raises(ConfigError, match=r"study\.yml"):
        find_study(str(tmp_path))
