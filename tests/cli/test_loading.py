"""Modules that a command loads for good are spared Python's search for garbage; everything else is still searched."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from lit_sb3_ray.cli.loading import load_to_stay

# In a process of its own: what is frozen stays so.
SCRIPT = """
import gc, sys
from lit_sb3_ray.cli.loading import load_to_stay
load_to_stay("json.tool")
kept = gc.get_freeze_count()
load_to_stay("json.tool")
print("json.tool" in sys.modules, kept > 0, gc.get_freeze_count() == kept, gc.isenabled())
"""


def run(script: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_what_was_loaded_is_kept_out_of_the_search_once_and_the_search_goes_on():
    assert run(SCRIPT) == ["True"] * 4


def test_a_module_that_cannot_be_loaded_keeps_nothing_and_the_search_goes_on():
    kept = gc.get_freeze_count()
    with pytest.raises(ModuleNotFoundError):
        load_to_stay("no_such_module_anywhere")
    assert gc.get_freeze_count() == kept
    assert gc.isenabled()


def test_a_search_that_was_off_stays_off():
    assert run("import gc\ngc.disable()\n" + SCRIPT) == ["True", "True", "True", "False"]
