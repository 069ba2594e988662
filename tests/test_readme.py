"""The README's examples work as written, in its order, each in a process of its own, all in one folder."""

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
from lit_sb3_ray.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(?P<mark><!-- example -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# RLModule is what RLTrainer makes of an algorithm; nobody needs to write it.
NOT_TOLD = ["RLModule"]
# These talk to the Hugging Face Hub; their own tests have a stand-in for it.
NEED_A_HUB = {"push-to-hub", "load-from-hub"}
FILE_NAME = re.compile(r"# (?P<name>[\w.]+\.(py|yml))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block of the README: a file if its first line is a comment with a file's name."""

    language: str
    text: str
    marked: bool

    @property
    def file(self):
        match = FILE_NAME.match(self.text)
        return match["name"] if match else None

    @property
    def programs(self):
        """What is to be run: Python code, or argument lists of `lit-sb3-ray`."""
        if self.language == "python":
            return [] if self.file else [self.text]
        if not self.marked:
            return []
        lines = [shlex.split(line) for line in self.text.replace("\\\n", " ").splitlines()]
        assert all(words[0] == "lit-sb3-ray" for words in lines), f"an example is a lit-sb3-ray command: {self.text}"
        return [words[1:] for words in lines]


def blocks():
    text = (ROOT / "README.md").read_text()
    return [Block(match["language"], match["text"], bool(match["mark"])) for match in BLOCK.finditer(text)]


def environment():
    """This process's environment, with this checkout's package for the children and no display to render to."""
    hidden = ("DISPLAY", "WAYLAND_DISPLAY")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])}


def test_every_part_of_the_package_has_an_example():
    text = (ROOT / "README.md").read_text()
    programs = [program for block in blocks() for program in block.programs]
    commands = [program for program in programs if isinstance(program, list)]
    code = "\n".join(program for program in programs if isinstance(program, str))
    assert {words[0] for words in commands} == set(COMMANDS) - NEED_A_HUB
    assert all(f"lit-sb3-ray {name}" in text for name in NEED_A_HUB)
    assert [name for name in lit_sb3_ray.__all__ if name[0] != "_" and name not in code] == NOT_TOLD
    assert len(commands) >= 10


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_examples_work_in_their_order(tmp_path):
    arguments, texts = [], []
    for block in blocks():
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
        for program in block.programs:
            texts.append(block.text)
            if isinstance(program, str):
                script = tmp_path / f"block_{len(arguments)}.py"
                script.write_text(program)
                arguments.append([str(script)])
            else:
                arguments.append(["-m", "lit_sb3_ray", *program])
    (tmp_path / "programs.json").write_text(json.dumps(arguments))
    driver = [sys.executable, str(ROOT / "tests" / "fork_each.py"), "programs.json"]
    done = subprocess.run(driver, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=580)
    ended = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert ended, done.stderr
    number, code = ended[-1]
    output = (tmp_path / f"{number}.out").read_text()
    assert code == 0, f"exit code {code} of\n{texts[number]}\n{output}"
    assert len(ended) == len(arguments), f"nothing came of\n{texts[len(ended)]}\n{done.stderr}"
    for name in (
        "ppo/CartPole-v1",
        "ppo/Pendulum-v1",
        "dqn/CartPole-v1",
        "ppo/Corridor-v0",
        "my_algos-CountingPPO/CartPole-v1",
    ):
        assert (tmp_path / "logs" / f"{name}_1" / f"{name.split('/')[1]}.zip").is_file(), name


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
