"""Run folders for benchmarks, most of them written without a training."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from lit_sb3_ray.cli import main as cli

TINY = ["-n", "64", "--eval-freq", "-1", "--device", "cpu", "--verbose", "0", "--seed", "1", "--gym-packages", "tiny_envs"]
PPO = ["-params", "n_steps:32", "n_envs:1", "batch_size:32", "policy_kwargs:dict(net_arch=[4])"]


def train(logs: Path, *words: str) -> Path:
    """Trains a small run of PPO in an environment, and returns its folder."""
    known = set(logs.glob("*/*"))
    assert cli.main(["train", "-f", str(logs), *TINY, *PPO, *words]) == 0
    (made,) = set(logs.glob("*/*")) - known
    return made


def copy(run: Path, env_id: str, number: int = 1, **arguments: object) -> Path:
    """Copies a run as one of another environment, which its model has never seen."""
    target = run.parent / f"{env_id}_{number}"
    shutil.copytree(run, target)
    old = run.name.rpartition("_")[0]
    (target / f"{old}.zip").rename(target / f"{env_id}.zip")
    (target / old).rename(target / env_id)
    settings = target / env_id / "args.yml"
    settings.write_text(yaml.safe_dump({**yaml.safe_load(settings.read_text()), "env": env_id, **arguments}))
    return target
