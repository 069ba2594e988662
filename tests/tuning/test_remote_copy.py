"""The copy of a study's folder beside its trials."""

import pytest
from studies import study_of

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.drawing import space_of
from lit_sb3_ray.tuning.opening import open_for_work
from lit_sb3_ray.tuning.remote_copy import keep_copy


def test_the_folder_is_copied_whole_and_again_over_what_is_there(tmp_path):
    folder, url = tmp_path / "CartPole-v1_study_1", f"file://{tmp_path}/bucket"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "a.svg").write_text("<svg/>")
    (folder / "study.log").write_text("1")
    assert keep_copy(folder, url, "s") == f"{url}/s/study"
    (folder / "study.log").write_text("12")
    keep_copy(folder, url, "s")
    assert (tmp_path / "bucket/s/study/study.log").read_text() == "12"
    assert (tmp_path / "bucket/s/study/figures/a.svg").read_text() == "<svg/>"


def test_a_new_study_does_not_overwrite_the_copy_of_an_earlier_one(tmp_path):
    """On a new head, studies are numbered from 1 again; the copy may be all that the last head has left."""
    url = f"file://{tmp_path}/bucket"
    begun = []
    for head in ("first", "second"):
        manager = study_of(tmp_path / head, options={"storage_path": url})
        if begun:
            told = f"{url}/a2c_StudyWorth-v0_study_1/study is the copy of an earlier study 'a2c_StudyWorth-v0_study_1'"
            with pytest.raises(ConfigError, match=told):
                open_for_work(manager, space_of(manager), "random")
            assert not list((tmp_path / head).rglob("*study_1*"))
            continue
        begun.append(open_for_work(manager, space_of(manager), "random"))
        keep_copy(begun[0].folder.path, url, begun[0].study.study_name)
    named = study_of(tmp_path / "second", options={"storage_path": url}, study_name="another")
    begun.append(open_for_work(named, space_of(named), "random"))
    for opened in begun:
        opened.lease.end()


def test_a_copy_that_cannot_be_looked_for_is_told(tmp_path):
    manager = study_of(tmp_path, options={"storage_path": f"file://{tmp_path}/{'x' * 300}"})
    with pytest.raises(ConfigError, match=r"--storage-path 'file://.*xxx' cannot be read"):
        open_for_work(manager, space_of(manager), "random")
    assert not list(tmp_path.rglob("*_study_*"))


def test_a_folder_needs_no_copy(tmp_path):
    assert keep_copy(tmp_path, "", "s") is None
    assert keep_copy(tmp_path, str(tmp_path / "data"), "s") is None
    assert not (tmp_path / "data").exists()


def test_a_copy_that_cannot_be_made_is_a_warning(tmp_path, caplog):
    assert keep_copy(tmp_path, "file:///proc/nowhere", "s") is None
    assert "could not be copied to file:///proc/nowhere/s/study" in caplog.text
