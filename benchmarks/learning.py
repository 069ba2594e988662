"""Learning side by side with rl_zoo3: same figures, same seeds, final models evaluated the same way.

    python benchmarks/learning.py [--seeds 2] [--only "ppo CartPole-v1" ...] [--json benchmarks/results]

Every run is a whole command; its final model then plays 20 episodes. With the same packaged figures, seed and one thread the
weights are the same bit for bit, so differences can only come from what the two do on top of learning.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from comparison import median, report

# Env steps, and the order of size that the published benchmark gives.
CASES = {
    "ppo CartPole-v1": (100_000, 500.0),
    "dqn CartPole-v1": (50_000, 500.0),
    "ppo MountainCarContinuous-v0": (20_000, 88.0),
    "sac Pendulum-v1": (20_000, -157.0),
    "tqc Pendulum-v1": (20_000, -151.0),
    "ars CartPole-v1": (50_000, 500.0),
}
EPISODES = 20


def main() -> None:
    """Runs the cases asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    rows, figures = [], {}
    for case in args.only:
        steps, published = CASES[case]
        results = {name: [play(name, case, steps, seed) for seed in range(args.seeds)] for name in ("rl_zoo3", "ours")}
        figures[case] = results
        same = sum(a == b for a, b in zip(results["rl_zoo3"], results["ours"], strict=True))
        row = [case, f"{steps:,}", published, median(results["rl_zoo3"]), median(results["ours"]), f"{same} of {args.seeds}"]
        rows.append(row)
        print(*row, flush=True)
    columns = ["case", "env steps", "published", "rl_zoo3", "ours", "equal returns"]
    report("Mean return of the final model", columns, rows, args.json and args.json / "learning.json", figures=figures)


def play(contender: str, case: str, steps: int, seed: int) -> float:
    """Trains one contender and returns the mean return of its final model.

    Args:
        contender: `rl_zoo3` or `ours`.
        case: A key of `CASES`.
        steps: Env steps to train for.
        seed: The seed of training; evaluation has its own, the same for both.
    """
    from lit_sb3_ray import load_run
    from lit_sb3_ray.lit.evaluation import evaluate

    algo, env_id = case.split()
    module: list[str] = {"rl_zoo3": ["rl_zoo3.train"], "ours": ["lit_sb3_ray", "train"]}[contender]
    with tempfile.TemporaryDirectory() as folder:
        flags: list[Any] = [
            "--algo",
            algo,
            "--env",
            env_id,
            "-n",
            steps,
            "--eval-freq",
            -1,
            "--seed",
            seed,
            "--num-threads",
            1,
        ]
        command = [sys.executable, "-m", *module, *map(str, flags), "-f", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        model, env = load_run(Path(folder) / algo / f"{env_id}_1")
        try:
            return evaluate(model, env, EPISODES, seed=1000 + seed).mean_reward
        finally:
            env.close()


if __name__ == "__main__":
    main()
