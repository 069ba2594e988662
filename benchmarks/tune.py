"""A study here and in rl_zoo3: the same fixed trials, wall-clock from process start to exit.

    python benchmarks/tune.py [--trials 24] [--steps 10000] [--rounds 1] [--json benchmarks/results]

Both get the same trials of PPO on CartPole-v1 put into their storage beforehand, two at a time, the same evaluations, and no
pruning. The second table is what a trial of ours costs beyond its training, once its actor is warm.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from comparison import alternate, median, report

JOBS, EVALUATIONS, NAME = 2, 5, "fixed"


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    overheads: list[float] = []
    contenders = {
        "rl_zoo3": study("rl_zoo3", args.trials, args.steps, overheads),
        "ours": study("ours", args.trials, args.steps, overheads),
    }
    times = alternate(contenders, args.rounds)
    peer, ours = median(times["rl_zoo3"]), median(times["ours"])
    rows = [[f"{args.trials} trials of {args.steps:,} steps", peer, ours, ours / peer]]
    path = args.json and args.json / "tune.json"
    report("Study, wall-clock", ["ppo CartPole-v1", "rl_zoo3 s", "ours s", "ours / rl_zoo3"], rows, None)
    beyond = [[len(overheads), median(overheads), float(np.percentile(overheads, 90)), max(overheads)]]
    columns = ["warm trials", "median s", "90 % s", "largest s"]
    report("Beyond training, a trial", columns, beyond, path, wall_clock=times, overheads=overheads, rows_study=rows)


def fixed_trials(number: int) -> list[dict[str, Any]]:
    """Parameters under the names that both systems' spaces have; of middling cost, so that no trial decides alone."""
    rng = np.random.default_rng(0)
    return [
        {
            "one_minus_gamma": float(rng.uniform(1e-3, 3e-2)),
            "one_minus_gae_lambda": float(rng.uniform(1e-2, 1e-1)),
            "learning_rate": float(rng.uniform(1e-4, 2e-3)),
            "batch_size_pow": int(rng.integers(6, 9)),
            "n_steps_pow": int(rng.integers(5, 9)),
            "ent_coef": float(rng.uniform(1e-8, 1e-2)),
            "clip_range": float(rng.choice([0.1, 0.2, 0.3])),
            "n_epochs": int(rng.choice([5, 10])),
            "max_grad_norm": float(rng.uniform(0.3, 2.0)),
            "net_arch": str(rng.choice(["tiny", "small"])),
            "activation_fn": str(rng.choice(["tanh", "relu"])),
        }
        for _ in range(number)
    ]


def study(contender: str, trials: int, steps: int, overheads: list[float]) -> Callable[[int], float]:
    """Makes a contender: one study of the fixed trials, in a process of its own."""

    def run(number: int) -> float:
        import time

        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with tempfile.TemporaryDirectory() as folder:
            storage = str(Path(folder) / "study.log")
            backend = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(storage))
            made = optuna.create_study(storage=backend, study_name=NAME, direction="maximize")
            for params in fixed_trials(trials):
                made.enqueue_trial(params)
            command = [sys.executable, "-m", *_words(contender), "--algo", "ppo", "--env", "CartPole-v1", "-n", str(steps)]
            command += ["--n-trials", str(trials), "--n-jobs", str(JOBS), "--n-evaluations", str(EVALUATIONS)]
            command += ["--storage", storage, "--study-name", NAME, "--sampler", "random", "--pruner", "none"]
            command += ["--seed", str(number), "-f", folder, "--no-optim-plots", "--num-threads", "1"]
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            elapsed = time.perf_counter() - begun
            rows = optuna.load_study(storage=backend, study_name=NAME).trials
            states = {row.state.name for row in rows}
            if states != {"COMPLETE"} or len(rows) != trials:
                raise RuntimeError(f"{contender} ended with {len(rows)} trials: {states}")
            if contender == "ours":
                overheads.extend(beyond_training(rows))
        return elapsed

    return run


def beyond_training(rows: list[Any]) -> list[float]:
    """Seconds of each warm trial, from the moment it was drawn to its end, that were not spent in its steps."""
    found = []
    for row in rows[JOBS:]:
        results = Path(row.user_attrs["folder"]) / "result.json"
        last = json.loads(results.read_text().splitlines()[-1])
        found.append((row.datetime_complete - row.datetime_start).total_seconds() - last["time_total_s"])
    return found


def _words(contender: str) -> list[str]:
    if contender == "ours":
        return ["lit_sb3_ray", "tune"]
    return ["rl_zoo3.train", "--optimize-hyperparameters"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
