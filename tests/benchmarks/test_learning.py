"""Learning beside rl_zoo3, the shortest case of `benchmarks/learning.py`: same figures, same seed, and the agent is good."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ppo_climbs_the_mountain_as_rl_zoo3_does(tmp_path):
    case = "ppo MountainCarContinuous-v0"
    words = ["--seeds", "1", "--only", case, "--json", str(tmp_path)]
    subprocess.run([sys.executable, str(BENCHMARKS / "learning.py"), *words], check=True, capture_output=True)
    figures = json.loads((tmp_path / "learning.json").read_text())["figures"][case]
    assert figures["ours"] == figures["rl_zoo3"]
    # The published run has 88.3 +/- 2.6; an agent that never reaches the goal has less than 0.
    assert figures["ours"][0] > 60
