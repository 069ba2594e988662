"""PyTorch's profiler records a few iterations that learn, never a whole training."""

from __future__ import annotations

import pytest
from sb3_contrib import ARS
from stable_baselines3 import PPO, SAC
from torch.profiler import ProfilerAction

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.lit.profilers import make_profiler


def ppo():
    return PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, n_epochs=1, device="cpu")


def sac(train_freq=1):
    small = {"batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
    return SAC("MlpPolicy", "TinyCount-v0", learning_starts=50, train_freq=train_freq, device="cpu", **small)


def recorded(profiler):
    """The iterations that are recorded, counted from 0."""
    schedule = profiler._schedule._schedule
    kept = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
    return [iteration for iteration in range(1000) if schedule(iteration) in kept]


@pytest.mark.parametrize(
    ("make", "total", "iterations"),
    [
        (ppo, 16_000, [2, 3, 4]),
        (ppo, 32, [1, 2, 3]),
        (sac, 10_000, list(range(52, 82))),
        (lambda: sac((1, "episode")), 10_000, [3, 4, 5]),
        (lambda: ARS("LinearPolicy", "TinyCount-v0", device="cpu"), 10_000, [2, 3, 4]),
    ],
)
def test_what_is_recorded(make, total, iterations, tmp_path):
    assert recorded(make_profiler("pytorch", tmp_path, make(), total)) == iterations


def test_a_longer_training_gives_no_larger_report(tmp_path):
    sizes = []
    for total in (96, 320):
        folder = tmp_path / str(total)
        model = ppo()
        RLTrainer(max_steps=total, profiler=make_profiler("pytorch", folder, model, total)).fit(model)
        (trace,) = folder.glob("*.json")
        sizes.append(trace.stat().st_size)
        (report,) = folder.glob("*.txt")
        assert "[pl][profile]collect_rollouts" in report.read_text()
        assert "[pl][profile]train " in report.read_text()
    assert sizes[1] < 1.5 * sizes[0]
