"""The lock file pins what pyproject.toml asks for, and nothing that ties it to one machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = [line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def pinned():
    pins = [line.partition(" ;")[0].split("==") for line in LOCK]
    return {canonicalize_name(name): version for name, version in pins}


def test_each_line_pins_one_public_version():
    assert LOCK
    pin = r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.]*( ; [a-z0-9_ =!\"]+)?"
    assert all(re.fullmatch(pin, line) for line in LOCK)
    assert pinned()["torch"] == "2.13.0"


def test_lock_satisfies_pyproject():
    extras = re.search(r"LOCKED_EXTRAS := (\S+)", MAKEFILE)[1].split(",")
    wanted = PROJECT["dependencies"] + [item for extra in extras for item in PROJECT["optional-dependencies"][extra]]
    for requirement in map(Requirement, wanted):
        version = pinned()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} is locked at {version}"


def test_dependencies_are_ranges():
    assert all(">=" in text and "==" not in text for text in PROJECT["dependencies"])


def test_pre_commit_hooks_are_local():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    assert all(hook["entry"].startswith(".venv/bin/") for hook in config["repos"][0]["hooks"])


def test_extras_that_messages_name_exist():
    families = (ROOT / "lit_sb3_ray" / "envs" / "families.py").read_text(encoding="utf-8")
    named = set(re.findall(r'_extra\("(\w+)"\)', families))
    for module in (ROOT / "lit_sb3_ray").rglob("*.py"):
        named |= set(re.findall(r"lit-sb3-ray\[(\w+)\]", module.read_text(encoding="utf-8")))
    assert "atari" in named
    assert named <= set(PROJECT["optional-dependencies"])
