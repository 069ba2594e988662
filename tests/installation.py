"""Builds and installs a copy of the checkout, without touching the checkout or the environment that runs the tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command with no Python settings inherited and returns its output; a failure shows what it wrote."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def copy_sources(folder: Path) -> Path:
    """What a build reads, in a folder of its own: building in the checkout would leave build/ and *.egg-info there."""
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("lit_sb3_ray", "hyperparams"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def build_wheel(source: Path, output: Path) -> Path:
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", output, source)
    run(*command, cwd=source.parent)
    (wheel,) = output.glob("*.whl")
    return wheel


def create_venv(folder: Path) -> Path:
    """A virtual environment that sees this environment's packages, though not a copy of ours that it may hold."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    # A path named in a .pth file is searched, but its own .pth files are not run: no editable install gets through.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    return folder / "bin" / "python"


def install(python: Path, *arguments: str | Path) -> None:
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed")
    run(python, "-m", "pip", "install", *options, *arguments, cwd=python.parents[1])
