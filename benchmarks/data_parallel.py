"""N learners with B/N envs each against one learner with B envs: the same learning, and what they gain in speed.

    python benchmarks/data_parallel.py [--parts learning speed] [--learners 2] [--envs 8] [--seeds 5] [--json FOLDER]

Learning: PPO on CartPole-v1 with the packaged hyperparameters, evaluated every 5,000 env steps of all learners. The area under
a learning curve is its mean return; the 95 % bootstrap interval of the difference between the mean areas (seeds are drawn anew
in each group) has to contain 0, and every run has to reach 475. It needs no quiet machine, as nothing is timed.

Speed: env steps a second without evaluations, with the packaged network and with larger ones, one thread a learner, and one
learner with as many threads as there are learners, which has as many processors. Efficiency is the speed-up over one learner
with one thread, divided by the processors; learners pay where theirs is above that of the threads, and above 1/N.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparison import alternate, median, report

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.experiment.metrics import read_rows

ENV, REACHED = "CartPole-v1", 475.0
POINTS, EPISODES = 20, 10
DRAWS = 10_000


def main() -> None:
    """Compares learning and speed, and prints one table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=["learning", "speed"], default=["learning", "speed"])
    parser.add_argument("--learners", type=int, default=2)
    parser.add_argument("--envs", type=int, default=8, help="envs of all learners together")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000, help="env steps of each run")
    parser.add_argument("--speed-steps", type=int, default=20_000, help="env steps of each run that is timed")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is timed")
    parser.add_argument("--nets", type=int, nargs="+", default=[64, 256, 1024], help="widths of the networks that are timed")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda where each learner finds a GPU")
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    title = f"{args.learners} learners with {args.envs // args.learners} envs each, and one with {args.envs}"
    if "learning" in args.parts:
        rows, figures = learning(args)
        low, high = figures["interval"]
        difference = f"{args.learners} learners less one: {figures['difference']:.1f}, 95 % [{low:.1f}, {high:.1f}]"
        print(f"\ndifference of the areas, {difference}")
        columns = ["ppo " + ENV, "learners", "area under the curve", "reached 475"]
        report(title, columns, rows, args.json and args.json / "data_parallel_learning.json", figures=figures)
    if "speed" in args.parts:
        rows, figures = speed(args)
        columns = [f"ppo {ENV}, net", "learners", "threads each", "env steps/s", "efficiency"]
        report(title, columns, rows, args.json and args.json / "data_parallel_speed.json", figures=figures)


def learning(args: argparse.Namespace) -> tuple[list[list[Any]], dict[str, Any]]:
    """Lets both learn with every seed.

    Args:
        args: The command line's.

    Returns:
        A row for each, and all figures: the curves, the areas, and the interval of their difference.
    """
    curves: dict[str, list[list[float]]] = {}
    for learners in (1, args.learners):
        curves[str(learners)] = [_told(learners, seed, curve(learners, args, seed)) for seed in range(args.seeds)]
    areas = {name: [float(np.mean(returns)) for returns in found] for name, found in curves.items()}
    rows: list[list[Any]] = []
    for name, found in curves.items():
        reached = sum(max(returns) >= REACHED for returns in found)
        rows.append(["learning", int(name), float(np.mean(areas[name])), f"{reached} of {len(found)}"])
    one, several = areas["1"], areas[str(args.learners)]
    low, high = interval_of_difference(one, several)
    figures = {"curves": curves, "areas": areas, "difference": float(np.mean(several) - np.mean(one)), "interval": [low, high]}
    return rows, {**figures, "contains 0": low <= 0.0 <= high}


def speed(args: argparse.Namespace) -> tuple[list[list[Any]], dict[str, Any]]:
    """Times both, with each network.

    Args:
        args: The command line's.

    Returns:
        A row for each, and all figures.
    """
    rows, speeds = [], {}
    sizes = [(1, 1), (1, args.learners), (args.learners, 1)]
    for width in args.nets:
        contenders = {_called(*size): _timed(*size, width, args) for size in sizes}
        found = alternate(contenders, args.rounds)
        speeds[str(width)] = found
        alone = median(found[_called(1, 1)])
        for learners, threads in sizes:
            rate = median(found[_called(learners, threads)])
            rows.append([f"[{width}, {width}]", learners, threads, rate, rate / alone / (learners * threads)])
            print(*rows[-1], flush=True)
    return rows, speeds


def _called(learners: int, threads: int) -> str:
    return f"learners {learners}, threads {threads}"


def interval_of_difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of how much larger the mean of the other group is.

    Args:
        one: The figures of a group.
        other: Those of the other.
    """
    rng = np.random.default_rng(0)
    means = [np.mean(rng.choice(np.asarray(group), (DRAWS, len(group))), axis=1) for group in (one, other)]
    low, high = np.quantile(means[1] - means[0], [0.025, 0.975])
    return float(low), float(high)


def curve(learners: int, args: argparse.Namespace, seed: int) -> list[float]:
    """Trains once; the mean returns of its evaluations."""
    with tempfile.TemporaryDirectory() as folder:
        freq = max(1, args.steps // POINTS)
        run = train(folder, learners, args, seed, n_timesteps=args.steps, eval_freq=freq, n_eval_episodes=EPISODES)
        returns = read_evaluations(run / "evaluations.npz")["results"]
    return [float(np.mean(row)) for row in returns]


def _told(learners: int, seed: int, returns: list[float]) -> list[float]:
    figures = f"area {np.mean(returns):.1f}, best {max(returns):.1f}"
    print(f"learners {learners}, seed {seed}: {figures}", flush=True)
    return returns


def _timed(learners: int, threads: int, width: int, args: argparse.Namespace) -> Any:
    # A larger network takes longer, and shows its speed sooner.
    settings: dict[str, Any] = {"n_timesteps": max(2_000, args.speed_steps * 64 // max(64, width)), "num_threads": threads}
    settings |= {"eval_freq": -1, "hyperparams": {"policy_kwargs": {"net_arch": [width, width]}}}

    def run(number: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            trained = train(folder, learners, args, number, **settings)
            _, rows = read_rows(trained / "metrics.csv")
        return float(rows[-1]["time/fps"])

    return run


def train(folder: str, learners: int, args: argparse.Namespace, seed: int, **settings: Any) -> Path:
    """Trains in a folder; returns the run's own."""
    manager = ExperimentManager(
        None,
        "ppo",
        ENV,
        folder,
        seed=seed,
        verbose=0,
        device=args.device,
        vec_env_type="dummy",
        n_envs=args.envs,
        keep_checkpoints=0,
        devices=learners,
        **{"num_threads": 1, **settings},
    )
    model = manager.setup_experiment()
    assert model is not None, "this is no study"
    manager.learn(model)
    return manager.run.path


if __name__ == "__main__":
    main()
