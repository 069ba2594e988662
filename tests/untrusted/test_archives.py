"""Archives are looked over before anything is unpacked: no way out of the folder, no bombs."""

import stat
import zipfile

import pytest
from hostile import zip_with

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.archives import extract, leads_out, open_archive


@pytest.mark.parametrize(
    "name",
    ["../out", "a/../../out", "/out", "C:out", "C:\\out", "\\\\host\\share\\out", "a\\..\\..\\out", "..", ""],
)
def test_names_that_lead_out_are_known(name):
    assert leads_out(name)


@pytest.mark.parametrize("name", ["a", "a/b", "a.b/c..d", "..a", "a b"])
def test_names_that_stay_inside_are_known(name):
    assert not leads_out(name)


@pytest.mark.parametrize("name", ["../out.csv", "/tmp/out.csv", "a/../../out.csv"])
def test_nothing_is_unpacked_from_an_archive_with_a_way_out(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = zip_with(tmp_path / "x.zip", "0.monitor.csv", name)
    with pytest.raises(ConfigError, match=r"x\.zip was refused: .*out\.csv' in it leads out of the folder"):
        extract(path, folder, lambda _: True)
    assert not list(folder.iterdir())
    assert {entry.name for entry in tmp_path.iterdir()} == {"folder", "x.zip"}


def test_a_link_is_refused(tmp_path):
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(entry, "/etc")
    with pytest.raises(ConfigError, match="leads out"), open_archive(tmp_path / "x.zip"):
        pass


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = zip_with(tmp_path / "x.zip", "data", content=bytes(32 * 2**20))
    assert path.stat().st_size < 100_000
    with pytest.raises(ConfigError, match="'data' in it would unpack to 33,554,432 bytes"), open_archive(path):
        pass


def test_a_name_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        zip_with(tmp_path / "x.zip", "data", "data")
    with pytest.raises(ConfigError, match="one name twice"), open_archive(tmp_path / "x.zip"):
        pass


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04junk"])
def test_a_damaged_archive_is_told(tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ConfigError, match="no zip archive, or a damaged one"), open_archive(tmp_path / "x.zip"):
        pass


def test_only_wanted_files_of_the_top_are_unpacked(tmp_path):
    path = zip_with(tmp_path / "x.zip", "0.monitor.csv", "evaluations.npz", "run.py", "sub/1.monitor.csv", content=b"abc")
    folder = tmp_path / "folder"
    folder.mkdir()
    files = extract(path, folder, lambda name: name.endswith(".csv"))
    assert files == [folder / "0.monitor.csv"]
    assert [entry.name for entry in folder.iterdir()] == ["0.monitor.csv"]
    assert files[0].read_bytes() == b"abc"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_bytes_that_were_changed_on_the_way_are_told_whatever_they_were(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", method) as archive:
        archive.writestr("ü.csv", "1,2\n" * 10)
    whole = (tmp_path / "whole.zip").read_bytes()
    for place in range(len(whole)):
        for value in (0, 255, whole[place] ^ 1):
            (tmp_path / "x.zip").write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                with open_archive(tmp_path / "x.zip") as archive:
                    for name in archive.namelist():
                        archive.read(name)
            except ConfigError as error:
                assert "\n" not in str(error)
