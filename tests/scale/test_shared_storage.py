"""Folders and URLs that trials are kept at. What a second node says of them is in test_nodes.py."""

from __future__ import annotations

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.remote_folder import is_url, open_url, url_of
from lit_sb3_ray.scale.shared_storage import blind_nodes, check_shared


def test_urls_are_told_from_paths():
    assert is_url("s3://bucket/a")
    assert not is_url("/data/a:b")


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("file:///data/a/", "local", "/data/a"),
        ("s3://bucket/a?region=eu-west-1", "s3", "bucket/a"),
        ("s3://bucket/a?endpoint_override=localhost:9000&scheme=http", "s3", "bucket/a"),
        ("gs://bucket/a", "gcs", "bucket/a"),
    ],
)
def test_arrow_has_file_systems_for_them(url, kind, path):
    system, inside = open_url(url, "--storage-path")
    assert (system.type_name, inside) == (kind, path)
    again, below = open_url(url_of(f"{path}/b/c", path, url), "--storage-path")
    assert again == system
    assert below == f"{path}/b/c"


@pytest.mark.parametrize("url", ["ftp://host/a", "memory://a", "s3://", "s3://bucket/a?nonsense=1"])
def test_others_are_refused(url):
    with pytest.raises(ConfigError, match=r"--storage-path '.*' cannot be used: .*s3://bucket/path"):
        open_url(url, "--storage-path")


@pytest.mark.usefixtures("ray_instance")
def test_a_url_is_written_to_and_left_as_it_was(tmp_path):
    check_shared(f"file://{tmp_path}/new", "--storage-path")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.usefixtures("ray_instance")
def test_a_url_that_cannot_be_written_is_refused():
    with pytest.raises(ConfigError, match="--storage-path 'file:///proc/nowhere' cannot be written"):
        check_shared("file:///proc/nowhere", "--storage-path")


@pytest.mark.usefixtures("ray_instance")
def test_a_folder_of_the_only_node_is_not_touched(tmp_path):
    assert blind_nodes(str(tmp_path / "new"), "--storage-path") == []
    assert not (tmp_path / "new").exists()
