"""What a user may ask of Ray, and what is refused before Ray is loaded."""

from __future__ import annotations

import sys

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.ray_settings import RaySettings, read_env_vars


@pytest.mark.parametrize("address", ["", "auto", "local", "10.0.0.1:6379", "head.example.org:6379", "[fd00::1]:6379"])
def test_addresses_of_clusters(address):
    assert RaySettings(address=address).address == address


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"address": "ray://head:10001"}, "'ray://head:10001': Ray Client is not supported; .* `ray job submit`"),
        ({"address": "http://127.0.0.1:8265"}, "is a dashboard's: that is for `ray job submit`"),
        ({"address": "head"}, "--ray-address 'head' is neither host:port nor auto nor local"),
        ({"address": "head:port"}, "neither host:port"),
        ({"address": "head:0"}, "neither host:port"),
        ({"num_cpus": -1}, "--ray-num-cpus -1: at least 0"),
        ({"num_gpus": -1}, "--ray-num-gpus -1: at least 0"),
        ({"object_store_memory": 1000}, "--ray-object-store-memory 1000: at least 80,000,000"),
        ({"address": "head:6379", "num_cpus": 4}, "--ray-num-cpus: the cluster of --ray-address head:6379 has what it was"),
        ({"address": "auto", "num_gpus": 1, "dashboard": True}, "--ray-num-gpus, --ray-dashboard: .* --ray-address local"),
        ({"py_modules": ("nowhere",)}, "--py-modules 'nowhere': there is no such file or folder"),
        ({"working_dir": "nowhere"}, "--working-dir 'nowhere' is no folder"),
        ({"env_vars": (("A-B", "1"),)}, "--env-vars 'A-B' is no name"),
        ({"address": None}, "address of Ray must be a string, not None"),
        ({"num_cpus": "2"}, "num_cpus of Ray must be a whole number or None, not '2'"),
        ({"py_modules": "mine.py"}, "py_modules of Ray must be a tuple of paths, not 'mine.py'"),
        ({"env_vars": {"A": "1"}}, "env_vars of Ray must be a tuple of names and values"),
        ({"env_vars": (("A", 1),)}, "env_vars of Ray must be a tuple of names and values"),
    ],
)
def test_what_is_refused(settings, told):
    with pytest.raises(ConfigError, match=told):
        RaySettings(**settings)


def test_a_file_that_cannot_be_imported_is_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"neither a package's folder, a .py file nor a wheel"):
        RaySettings(py_modules=(str(tmp_path / "notes.txt"),))


def test_a_ray_of_its_own_is_given_what_was_asked_for():
    settings = RaySettings(address="local", num_cpus=2, num_gpus=0, object_store_memory=10**8, dashboard=True)
    assert settings.own == {"num_cpus": 2, "num_gpus": 0, "object_store_memory": 10**8, "include_dashboard": True}
    assert RaySettings().own == {}


def test_what_is_shipped_is_named_by_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_envs").mkdir()
    settings = RaySettings(py_modules=("my_envs", "s3://bucket/more.zip"), working_dir=".", env_vars=(("A", "1"), ("B", "")))
    assert settings.runtime_env() == {
        "py_modules": [str(tmp_path / "my_envs"), "s3://bucket/more.zip"],
        "working_dir": str(tmp_path),
        "env_vars": {"A": "1", "B": ""},
    }
    assert RaySettings().runtime_env() == {}


def test_this_process_can_import_what_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shipped_module.py").write_text("WORTH = 3\n")
    settings = RaySettings(py_modules=(str(tmp_path / "shipped_module.py"),))
    settings.make_importable()
    settings.make_importable()
    assert sys.path.count(str(tmp_path)) == 1
    import shipped_module

    assert shipped_module.WORTH == 3


def test_environment_variables_are_read_as_the_shell_would():
    assert read_env_vars(["A=1", "B=x=y", "A=2", "EMPTY="]) == (("A", "2"), ("B", "x=y"), ("EMPTY", ""))
    with pytest.raises(ConfigError, match="--env-vars 'A': give NAME=VALUE"):
        read_env_vars(["A"])
