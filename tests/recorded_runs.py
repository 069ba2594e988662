"""Tiny runs to be recorded, trained through the command line."""

from __future__ import annotations

import subprocess
import sys

from lit_sb3_ray.cli import main as cli

TRAIN = ["-n", "256", "--device", "cpu", "--num-threads", "1", "--seed", "1", "--eval-freq", "128", "--save-freq", "128"]

DRAWN = """
TinyDrawn-v0:
  n_timesteps: 64
  policy: MlpPolicy
  n_steps: 16
  batch_size: 16
  n_epochs: 1
  n_envs: 2
  env_kwargs: {length: 7}
"""
"""The colour is left to the command line, and so stands in `args.yml` where the length stands in `config.yml`."""


def called(command, capsys, logs, *words):
    """Calls a command on the CPU; returns its code, the lines it has printed, and what it has said beside them."""
    code = cli.main([command, "-f", str(logs), "--device", "cpu", *words])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def train_cart_pole(logs):
    """Trains with normalised observations; saves models after 128 and 256 steps, of which one is the best, and the final."""
    assert cli.main(["train", "-f", str(logs), *TRAIN, "-params", "n_steps:32", "n_envs:2", "normalize:True"]) == 0
    return logs


def train_drawn(logs):
    """Trains in episodes of 7 steps on green; saves a model after 32 and 64 steps, and the final one, but no best one."""
    (logs.parent / "drawn.yml").write_text(DRAWN)
    words = ["--env", "TinyDrawn-v0", "--gym-packages", "tiny_envs", "-conf", str(logs.parent / "drawn.yml")]
    words += ["--env-kwargs", "colour:[0, 160, 0]", "-f", str(logs), "--save-freq", "32", "--eval-freq", "-1"]
    assert cli.main(["train", *words, "--seed", "1", "--device", "cpu", "--num-threads", "1"]) == 0
    return logs


def train_with_rl_zoo3(logs):
    """The same as `train_cart_pole`, by rl_zoo3."""
    words = ["-f", str(logs), *TRAIN, "-params", "n_steps:32", "n_envs:2", "normalize:True"]
    subprocess.run([sys.executable, "-m", "rl_zoo3.train", *words], capture_output=True, check=True)
    return logs
