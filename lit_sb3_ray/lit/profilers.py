"""Lightning's profilers by name, with a report in the run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytorch_lightning.profilers import AdvancedProfiler, Profiler, PyTorchProfiler, SimpleProfiler
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.type_aliases import TrainFrequencyUnit

PROFILERS = ("simple", "advanced", "pytorch")
# A recording of every operation takes megabytes a second: this many iterations, or env steps where iterations are short.
ITERATIONS, STEPS = 3, 30


def make_profiler(name: str, folder: Path, algorithm: BaseAlgorithm, total_timesteps: int) -> Profiler:
    """Makes a profiler.

    Args:
        name: One of `PROFILERS`.
        folder: Where its report goes, as `fit-profile*`.
        algorithm: What is to be profiled.
        total_timesteps: Env steps it trains for.
    """
    if name == "simple":
        return SimpleProfiler(dirpath=folder, filename="profile")
    if name == "advanced":
        return AdvancedProfiler(dirpath=folder, filename="profile")
    return PyTorchProfiler(dirpath=folder, filename="profile", schedule=_schedule(algorithm, total_timesteps))


def _schedule(algorithm: Any, total_timesteps: int) -> Callable[[int], Any]:
    """When to record: a few iterations once updates have begun. Lightning's own choice would record the whole training."""
    from torch.profiler import schedule

    steps = _steps_of_iteration(algorithm)
    idle = getattr(algorithm, "learning_starts", 0) // steps
    active = max(ITERATIONS, STEPS // steps)
    wait = max(0, min(idle + 1, total_timesteps // steps - 1 - active))
    recorded: Callable[[int], Any] = schedule(wait=wait, warmup=1, active=active, repeat=1)
    return recorded


def _steps_of_iteration(algorithm: Any) -> int:
    """Env steps of an iteration; a guess where it is made of episodes."""
    frequency = getattr(algorithm, "train_freq", None)
    if frequency is None:
        return int(getattr(algorithm, "n_steps", STEPS)) * int(algorithm.n_envs)
    episodes = frequency.unit == TrainFrequencyUnit.EPISODE
    return STEPS if episodes else int(frequency.frequency) * int(algorithm.n_envs)
