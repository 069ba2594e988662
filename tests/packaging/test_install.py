"""The packaged hyperparameters and the command are there in a wheel install and in an editable install alike."""

from __future__ import annotations

import json
import zipfile

import pytest
from installation import ROOT, build_wheel, copy_sources, create_venv, install, run

READ_HYPERPARAMS = """
import importlib.metadata, importlib.resources, json, yaml
import lit_sb3_ray
folder = importlib.resources.files("lit_sb3_ray.hyperparams")
files = {item.name: sorted(yaml.safe_load(item.read_text("utf-8"))) for item in folder.iterdir() if item.name.endswith(".yml")}
(command,) = importlib.metadata.distribution("lit-sb3-ray").entry_points.select(group="console_scripts")
print(json.dumps({"package": lit_sb3_ray.__file__, "files": files, "command": [command.name, callable(command.load())]}))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("source") / "checkout")


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    return build_wheel(source, tmp_path_factory.mktemp("wheel"))


def check(answer, home):
    found = json.loads(answer)
    assert found["package"].startswith(str(home))
    assert set(found["files"]) == {path.name for path in (ROOT / "hyperparams").glob("*.yml")}
    assert all("default" in entries for entries in found["files"].values())
    assert found["command"] == ["lit-sb3-ray", True]


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "lit_sb3_ray").rglob("*.py")}
    hyperparams = {f"lit_sb3_ray/hyperparams/{path.name}" for path in (ROOT / "hyperparams").glob("*.yml")}
    others = {"hyperparams/__init__.py", "py.typed", "benchmarking/published.csv"}
    assert names == modules | hyperparams | {f"lit_sb3_ray/{name}" for name in others}


def test_wheel_carries_the_licence_and_the_command(wheel):
    archive = zipfile.ZipFile(wheel)
    texts = {name.partition(".dist-info/")[2]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "License-Expression: MIT" in archive.read(texts["METADATA"]).decode()
    assert "The lit_sb3_ray authors" in archive.read(texts["licenses/LICENSE"]).decode()
    assert "lit-sb3-ray = lit_sb3_ray.cli.main:main" in archive.read(texts["entry_points.txt"]).decode()


def test_wheel_install_reads_hyperparams(wheel, tmp_path):
    python = create_venv(tmp_path / "venv")
    install(python, wheel)
    check(run(python, "-c", READ_HYPERPARAMS, cwd=tmp_path), tmp_path / "venv")


def test_editable_install_reads_hyperparams_and_sees_changes(tmp_path):
    source = copy_sources(tmp_path / "checkout")
    python = create_venv(tmp_path / "venv")
    install(python, "--editable", source)
    check(run(python, "-c", READ_HYPERPARAMS, cwd=tmp_path), source)
    (source / "hyperparams" / "ppo.yml").write_text("default: {n_timesteps: 1, policy: MlpPolicy}\n", encoding="utf-8")
    assert json.loads(run(python, "-c", READ_HYPERPARAMS, cwd=tmp_path))["files"]["ppo.yml"] == ["default"]


def test_installed_command_answers(wheel, tmp_path):
    python = create_venv(tmp_path / "venv")
    install(python, wheel)
    assert "train" in run(python.with_name("lit-sb3-ray"), "--help", cwd=tmp_path)
