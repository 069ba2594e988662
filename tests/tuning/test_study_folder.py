"""A study's folder: its number, what it says of the study, and how it is opened again."""

import os
import shutil

import pytest
import yaml

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.study_folder import (
    StudyFolder,
    claim_study,
    describe_study,
    file_name,
    folder_beside,
    from_anywhere,
    open_study_folder,
    remove_study,
)


def test_two_starts_get_two_folders(tmp_path):
    first, second = (claim_study(tmp_path / "logs", "ppo", "ALE/Pong-v5") for _ in range(2))
    assert [folder.path.name for folder in (first, second)] == ["ALE-Pong-v5_study_1", "ALE-Pong-v5_study_2"]
    assert first.path.parent == tmp_path / "logs" / "ppo"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="a study folder cannot be made in") as error:
        claim_study(tmp_path / "file", "ppo", "CartPole-v1")
    assert "\n" not in str(error.value)


def test_only_an_empty_folder_is_removed(tmp_path):
    first, second = (claim_study(tmp_path, "ppo", "CartPole-v1") for _ in range(2))
    first.settings.touch()
    for folder in (first, second):
        remove_study(folder)
    assert first.path.exists()
    assert not second.path.exists()


def test_a_study_with_its_own_journal_may_be_moved(tmp_path):
    folder = claim_study(tmp_path, "ppo", "CartPole-v1")
    describe_study(folder, str(folder.journal), "s", {"algo": "ppo", "n_trials": 3})
    # It was gone on with from another folder in between.
    storage = tmp_path / "x" / ".." / folder.journal.relative_to(tmp_path)
    describe_study(folder, str(storage), "s", {"algo": "ppo", "n_trials": 3})
    moved = tmp_path / "elsewhere"
    shutil.move(folder.path, moved)
    assert open_study_folder(moved) == (StudyFolder(moved), str(moved / "study.log"), "s", {"algo": "ppo", "n_trials": 3})


@pytest.mark.parametrize(
    ("storage", "found"),
    [
        ("sub/mine.log", "{here}/sub/mine.log"),
        ("sqlite:///mine.db", "sqlite:///{here}/mine.db"),
        ("sqlite:////srv/mine.db", "sqlite:////srv/mine.db"),
        ("postgresql://host/db", "postgresql://host/db"),
    ],
)
def test_another_storage_is_found_from_any_working_directory(storage, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = claim_study("logs", "ppo", "CartPole-v1")
    describe_study(folder, storage, "s", {})
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert open_study_folder(os.path.relpath(folder.path))[1] == found.format(here=tmp_path)


def test_what_is_no_study_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"is no study's folder: it has no study\.yml"):
        open_study_folder(tmp_path)
    (tmp_path / "study.yml").write_text(yaml.safe_dump({"name": "s"}))
    with pytest.raises(ConfigError, match="names no storage"):
        open_study_folder(tmp_path)
    (tmp_path / "study.yml").write_text(yaml.safe_dump({"storage": "study.log"}))
    with pytest.raises(ConfigError, match="names no study"):
        open_study_folder(tmp_path)


def test_paths_among_the_settings_mean_the_same_from_any_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"conf_file": "conf.yml", "search_space": "space.yml", "log_folder": "logs", "optimization_log_path": "opt"}
    assert from_anywhere(files) == {name: str(tmp_path / path) for name, path in files.items()}
    others = {"conf_file": "pkg.conf", "search_space": "pkg.mod:function", "storage_path": "s3://bucket/x", "algo": "ppo"}
    for stays in (others, {"storage_path": "", "optimization_log_path": None, "conf_file": "/srv/conf.py"}):
        assert from_anywhere(stays) == stays


def test_a_study_is_found_beside_its_own_journal(tmp_path):
    folder = claim_study(tmp_path, "ppo", "CartPole-v1")
    describe_study(folder, str(folder.journal), "s", {})
    assert folder_beside(str(folder.journal), "s") == folder
    assert folder_beside(str(folder.journal), "other") is None
    assert folder_beside(str(folder.path / "other.log"), "s") is None
    assert folder_beside(str(tmp_path / "study.log"), "s") is None
    assert folder_beside(f"sqlite:///{folder.path}/study.log", "s") is None


@pytest.mark.parametrize(
    ("name", "file"), [("s", "s"), ("a/b", "a-b"), ("../up", "-up"), ("...", "study"), ("x" * 300, "x" * 100)]
)
def test_a_study_s_name_leads_to_no_other_folder(name, file):
    assert file_name(name) == file
