"""The top level: help without heavy imports, spellings of commands, exit codes."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lit_sb3_ray
from lit_sb3_ray.cli import main as cli

HEAVY = ("torch", "ray", "stable_baselines3", "sb3_contrib", "gymnasium", "pytorch_lightning", "optuna", "numpy", "pandas")
LIST_MODULES = """
import sys
from lit_sb3_ray.cli.main import main
try:
    code = main({words!r})
except SystemExit as stop:
    code = stop.code
print("MODULES", code, *[name for name in {heavy!r} if name in sys.modules])
"""


def modules_after(words):
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES.format(words=words, heavy=HEAVY)], capture_output=True, text=True, check=True
    )
    return next(line for line in done.stdout.splitlines() if line.startswith("MODULES")).split()[1:]


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in cli.COMMANDS)])
def test_help_loads_nothing_heavy(words):
    assert modules_after(words) == ["0"]


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, lit_sb3_ray; dir(lit_sb3_ray); print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", lit_sb3_ray.__all__)
def test_public_names_exist(name):
    assert getattr(lit_sb3_ray, name) is not None
    assert name in dir(lit_sb3_ray)


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lit_sb3_ray.Nothing


def test_version_is_that_of_the_project(capsys):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == lit_sb3_ray.__version__
    assert cli.main(["--version"]) == 0
    assert lit_sb3_ray.__version__ in capsys.readouterr().out


def test_help_lists_every_command(capsys):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name}" in out for name in cli.COMMANDS)


def test_no_argument_prints_usage_and_is_bad_input(capsys):
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("usage: lit-sb3-ray")


def test_an_unknown_command_names_the_nearest(capsys):
    assert cli.main(["trian"]) == 2
    assert capsys.readouterr().err == "lit-sb3-ray: error: unknown command 'trian': did you mean 'train'?\n"


def test_underscores_stand_for_hyphens(monkeypatch):
    command = cli.Command("lit_sb3_ray.cli.train", "")
    monkeypatch.setitem(cli.COMMANDS, "load-from-hub", command)
    assert cli.find_command("load_from_hub") is command


def test_python_m_reports_bad_input_in_one_line():
    done = subprocess.run([sys.executable, "-m", "lit_sb3_ray", "train", "--seedd", "1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == ["lit-sb3-ray: error: unrecognized arguments: --seedd 1: did you mean '--seed'?"]


def test_ctrl_c_is_130(monkeypatch, capsys):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr("lit_sb3_ray.cli.enjoy.run", interrupted)
    assert cli.main(["enjoy"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_other_errors_propagate(monkeypatch):
    def broken(argv):
        raise RuntimeError("an env blew up")

    monkeypatch.setattr("lit_sb3_ray.cli.enjoy.run", broken)
    with pytest.raises(RuntimeError, match="blew up"):
        cli.main(["enjoy"])
