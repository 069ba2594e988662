"""What becomes of a command's arguments on their way to the head of a cluster, and what its surroundings are there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUBMIT = Path(__file__).parents[2] / "cluster/submit.py"
ARGUMENTS = ["tune", "--env-kwargs", "title:'two words'", "--notes", 'say "it\'s"', "$HOME;", "*", "back\\slash", ""]
SURROUNDINGS = "auto token None None"
# Stands in for the package on the head: tells what reached it, one argument a line.
PACKAGE = """
import os

def main(argv):
    print(*(os.environ.get(name) for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "OMP_NUM_THREADS", "PYTHONWARNINGS")))
    print("\\n".join(map(repr, argv)))
    return 7
"""


@pytest.fixture
def head(tmp_path):
    """A home with a package in it, and what `ray submit` does on the way there.

    It joins the words by blanks, and has a shell read them that has variables of its own.
    """
    package = tmp_path / "home/lit_sb3_ray/cli"
    package.mkdir(parents=True)
    (package / "main.py").write_text(PACKAGE)
    (package / "__init__.py").touch()
    (package.parent / "__init__.py").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    ray = tmp_path / "bin/ray"
    ray.write_text(
        f"""#!{sys.executable}
import subprocess, sys
assert sys.argv[1] == "submit", sys.argv
line = sys.argv[2:]
end = line.index("--")
print("options", line[:end], flush=True)
script = line[end - 1]
shell = "export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore && "
sys.exit(subprocess.call(["bash", "-c", shell + " ".join(["python", script, *line[end + 1:]])]))
"""
    )
    ray.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "OMP_", "PYTHONW"))}
    environment |= {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "home")}

    def call(*arguments):
        done = subprocess.run([sys.executable, SUBMIT, *arguments], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), done.stderr

    return call


def test_arguments_arrive_as_they_were_typed(head):
    code, lines, _ = head("--tmux", "cluster/on-prem.yaml", *ARGUMENTS)
    assert code == 7
    assert lines[0] == f"options ['--tmux', 'cluster/on-prem.yaml', '{SUBMIT}']"
    assert lines[1:] == [SURROUNDINGS, *map(repr, ARGUMENTS)]


def test_two_dashes_may_stand_before_the_command(head):
    assert head("cluster.yaml", "--", "status", "x")[1][1:] == [SURROUNDINGS, "'status'", "'x'"]


def test_one_quoted_line_is_taken_apart_on_the_head(head):
    lines = head("tune --env-kwargs \"title:'two words'\"")[1]
    assert lines == [SURROUNDINGS, "'tune'", "'--env-kwargs'", "\"title:'two words'\""]


def test_without_a_command_it_tells_what_it_takes(head):
    code, lines, told = head()
    assert code == 2 and not lines
    assert "ray submit" in told


def test_a_machine_without_the_package_is_told_in_one_line(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-S", "-E", SUBMIT, "status", "x"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "cannot import lit_sb3_ray" in done.stderr
