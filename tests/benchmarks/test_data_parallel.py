"""A short run of `benchmarks/data_parallel.py`: tables, JSON files, and an interval that is one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_a_tiny_budget_gives_every_figure(tmp_path):
    words = [
        "--seeds",
        "2",
        "--steps",
        "2048",
        "--speed-steps",
        "1024",
        "--rounds",
        "1",
        "--nets",
        "16",
        "--json",
        str(tmp_path),
    ]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_ADDRESS": "local"}
    command = [sys.executable, str(BENCHMARKS / "data_parallel.py"), *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    written = json.loads((tmp_path / "data_parallel_learning.json").read_text())
    assert [row[:2] for row in written["rows"]] == [["learning", 1], ["learning", 2]]
    figures = written["figures"]
    low, high = figures["interval"]
    assert low <= figures["difference"] <= high
    assert all(len(returns) >= 7 for found in figures["curves"].values() for returns in found)
    assert "difference of the areas" in done.stdout
    written = json.loads((tmp_path / "data_parallel_speed.json").read_text())
    assert [row[:3] for row in written["rows"]] == [["[16, 16]", 1, 1], ["[16, 16]", 1, 2], ["[16, 16]", 2, 1]]
    assert all(row[3] > 0 for row in written["rows"])
