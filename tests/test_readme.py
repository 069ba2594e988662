"""The README's examples work as written, in its order, each in a process of its own, all in one folder."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import lit_sb3_ray
from lit_sb3_ray.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
# A command to run has `<!-- example -->` above it; what a program prints, `<!-- output -->`.
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>example|output) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
# RLModule is what RLTrainer makes of an algorithm; nobody needs to write it.
NOT_TOLD = ["RLModule"]
# These talk to the Hugging Face Hub; their own tests have a stand-in for it.
NEED_A_HUB = {"push-to-hub", "load-from-hub"}
FILE_NAME = re.compile(r"# (?P<name>[\w.]+\.(py|yml))\n")
NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?")
MIGRATION = re.compile(r"^\| `((?:python -m )?rl_zoo3[. ][^`]*)`[^|`]*\| `(lit-sb3-ray [^`]*)` \|$", re.MULTILINE)
# What the migration table changes on purpose, beside the command's name.
CHANGED = {"vec_env", "trained_agent", "input", "no_hub"}

PARSE_AS_RL_ZOO3 = """
import argparse, json, runpy, sys

class Parsed(BaseException):
    pass

def parse(parser):
    values = vars(read(parser))
    raise Parsed({name: value for name, value in values.items() if value != parser.get_default(name)})

read, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, parse
# Its plots do without rliable, but not with one that cannot be imported, as beside pandas 3.
sys.modules["rliable"] = None
# Its push_to_hub asks this module for a name that it has no more. The package has a function of the same name.
import huggingface_sb3
vars(sys.modules["huggingface_sb3.push_to_hub"]).setdefault("generate_metadata", None)
for words in json.load(sys.stdin):
    try:
        if words[0] == "python":
            sys.argv = words[2:]
            runpy.run_module(words[2], run_name="__main__")
        else:
            sys.argv = words
            from rl_zoo3.cli import main
            main()
    except Parsed as parsed:
        print("GIVEN" + json.dumps(parsed.args[0], default=str), flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of the README: a file if its first line is a comment with a file's name."""

    language: str
    text: str
    mark: str | None

    @property
    def file(self):
        match = FILE_NAME.match(self.text)
        return match["name"] if match else None

    @property
    def programs(self):
        """What is to be run: Python code, or argument lists of `lit-sb3-ray`."""
        if self.language == "python":
            return [] if self.file else [self.text]
        if self.mark != "example":
            return []
        lines = [shlex.split(line) for line in self.text.replace("\\\n", " ").splitlines()]
        assert all(words[0] == "lit-sb3-ray" for words in lines), f"an example is a lit-sb3-ray command: {self.text}"
        return [words[1:] for words in lines]


def blocks():
    return [Block(match["language"], match["text"], match["mark"]) for match in BLOCK.finditer(README)]


def without_numbers(line):
    """A line as it is whatever has been measured or drawn."""
    return NUMBER.sub("#", line.strip())


def environment(address):
    """This process's environment for the examples: this checkout's package, the Ray of the tests, no display to render to.

    One thread each is enough for networks as small as theirs, beside tests that run at the same time.
    """
    hidden = ("DISPLAY", "WAYLAND_DISPLAY")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    path = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "RAY_ADDRESS": address, "OMP_NUM_THREADS": "1"}


def test_every_part_of_the_package_has_an_example():
    programs = [program for block in blocks() for program in block.programs]
    commands = [program for program in programs if isinstance(program, list)]
    code = "\n".join(program for program in programs if isinstance(program, str))
    assert {words[0] for words in commands} == set(COMMANDS) - NEED_A_HUB
    assert all(f"lit-sb3-ray {name}" in README for name in NEED_A_HUB)
    assert [name for name in lit_sb3_ray.__all__ if name[0] != "_" and name not in code] == NOT_TOLD
    assert len(commands) >= 10


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_examples_work_in_their_order(ray_instance, tmp_path):
    """Each ends without an error, and prints the lines that the README shows, but for their numbers."""
    import ray

    arguments, texts, shown = [], [], []
    for block in blocks():
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
        if block.mark == "output":
            shown[-1] = block.text.splitlines()
        for program in block.programs:
            texts.append(block.text)
            shown.append([])
            if isinstance(program, str):
                script = tmp_path / f"block_{len(arguments)}.py"
                script.write_text(program)
                arguments.append([str(script)])
            else:
                arguments.append(["-m", "lit_sb3_ray", *program])
    (tmp_path / "programs.json").write_text(json.dumps(arguments))
    driver = [sys.executable, str(ROOT / "tests" / "fork_each.py"), "programs.json"]
    environ = environment(ray.get_runtime_context().gcs_address)
    done = subprocess.run(driver, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=580)
    ended = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert ended, done.stderr
    number, code = ended[-1]
    output = (tmp_path / f"{number}.out").read_text()
    assert code == 0, f"exit code {code} of\n{texts[number]}\n{output}"
    assert len(ended) == len(arguments), f"nothing came of\n{texts[len(ended)]}\n{done.stderr}"
    for number, lines in enumerate(shown):
        output = (tmp_path / f"{number}.out").read_text()
        printed = [without_numbers(line) for line in output.splitlines()]
        missing = [line for line in lines if line != "..." and without_numbers(line) not in printed]
        assert not missing, f"{texts[number]}\ndid not print {missing}, but\n{output}"
    for name in (
        "ppo/CartPole-v1",
        "ppo/Pendulum-v1",
        "dqn/CartPole-v1",
        "ppo/Corridor-v0",
        "my_algos-CountingPPO/CartPole-v1",
    ):
        assert (tmp_path / "logs" / f"{name}_1" / f"{name.split('/')[1]}.zip").is_file(), name


def test_refused_commands_say_what_the_readme_shows(capsys):
    (shown,) = [block.text for block in blocks() if block.text.startswith("$ lit-sb3-ray")]
    pairs = re.findall(r"^\$ lit-sb3-ray (.+)\n(.+)$", shown, re.MULTILINE)
    assert len(pairs) >= 2
    for words, message in pairs:
        assert main(shlex.split(words)) == 2
        assert capsys.readouterr().err.splitlines()[-1] == message


@pytest.mark.slow
def test_both_sides_of_the_migration_table_are_commands_that_mean_the_same():
    rows = [[shlex.split(cell) for cell in row] for row in MIGRATION.findall(README)]
    names = {words[1] for _, words in rows}
    assert names == set(COMMANDS) - {"sweep", "status", "stop", "best", "report"}
    theirs = [their for their, _ in rows]
    done = subprocess.run(
        [sys.executable, "-c", PARSE_AS_RL_ZOO3], input=json.dumps(theirs), capture_output=True, text=True, timeout=120
    )
    given = [json.loads(line.removeprefix("GIVEN")) for line in done.stdout.splitlines() if line.startswith("GIVEN")]
    assert len(given) == len(rows), done.stderr[-2000:]
    for (_, words), their in zip(rows, given, strict=True):
        build_parser = importlib.import_module(COMMANDS[words[1]].module).build_parser
        ours = vars(build_parser().parse_args(words[2:]))
        differing = {name for name, value in their.items() if name in ours and ours[name] != value}
        # A run that is gone on with knows its algorithm and env itself.
        known = {"algo", "env"} if "--resume" in words else set()
        assert differing <= CHANGED | known, (words, their, ours)


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"])
def test_links_and_anchors_lead_somewhere(name):
    text = (ROOT / name).read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif "://" not in target:
            assert (ROOT / target).exists(), target
