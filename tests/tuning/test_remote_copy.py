"""The copy of a study's folder beside its trials."""

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


def test_a_folder_needs_no_copy(tmp_path):
    assert keep_copy(tmp_path, "", "s") is None
    assert keep_copy(tmp_path, str(tmp_path / "data"), "s") is None
    assert not (tmp_path / "data").exists()


def test_a_copy_that_cannot_be_made_is_a_warning(tmp_path, caplog):
    assert keep_copy(tmp_path, "file:///proc/nowhere", "s") is None
    assert "could not be copied to file:///proc/nowhere/s/study" in caplog.text
