"""What ASHA is worth: env steps spent until a study has found as good a trial as the same study without pruning.

    python benchmarks/asha.py [--envs CartPole-v1 Acrobot-v1] [--trials 24] [--steps 20000] [--seeds 3] [--json FOLDER]

Both studies of a seed draw the same trials at random, and a trial trains the same in both until ASHA ends it.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

from comparison import median, report

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.tuning.storage import load_study

EVALUATIONS = 9


def main() -> None:
    """Compares on every environment asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["CartPole-v1", "Acrobot-v1"])
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, figures = [], {}
    for env_id in args.envs:
        found = [compare(env_id, args.trials, args.steps, seed) for seed in range(args.seeds)]
        figures[env_id] = found
        ratios = [each["asha steps"] / each["steps"] for each in found if each["asha steps"] is not None]
        reached = f"{len(ratios)} of {len(found)}"
        whole = median([each["asha total"] / each["total"] for each in found])
        rows.append([env_id, median([each["best"] for each in found]), reached, median(ratios) if ratios else "-", whole])
        print(*rows[-1], flush=True)
    columns = ["ppo", "best value", "reached with asha", "steps to it, asha / none", "whole study, asha / none"]
    report("ASHA against no pruning", columns, rows, args.json and args.json / "asha.json", figures=figures)


def compare(env_id: str, trials: int, steps: int, seed: int) -> dict[str, Any]:
    """Runs both studies of one seed.

    Returns:
        The best value without pruning; env steps spent until it was found, without and with ASHA (None: not found); and env
        steps of the whole studies.
    """
    plain = study(env_id, trials, steps, seed, "none")
    pruned = study(env_id, trials, steps, seed, "asha")
    best = max(value for _, value in plain)
    return {
        "best": best,
        "steps": spent_until(best, plain),
        "asha steps": spent_until(best, pruned),
        "total": spent_until(None, plain),
        "asha total": spent_until(None, pruned),
    }


def study(env_id: str, trials: int, steps: int, seed: int, pruner: str) -> list[tuple[int, float]]:
    """Runs a study; returns env steps and value of its trials in the order in which they ended."""
    with tempfile.TemporaryDirectory() as folder:
        manager = ExperimentManager(
            None,
            "ppo",
            env_id,
            folder,
            n_timesteps=steps,
            n_trials=trials,
            sampler="random",
            pruner=pruner,
            n_evaluations=EVALUATIONS,
            seed=seed,
            verbose=0,
            device="cpu",
            optimize_hyperparameters=True,
            no_optim_plots=True,
        )
        result = manager.hyperparameters_optimization()
        rows = load_study(result.storage, result.study_name).trials
    rows = sorted((row for row in rows if row.value is not None), key=lambda row: row.datetime_complete)
    return [(row.user_attrs["num_timesteps"], row.value if row.state.name == "COMPLETE" else float("-inf")) for row in rows]


def spent_until(best: float | None, trials: list[tuple[int, float]]) -> int | None:
    """Adds env steps up until a trial is as good as `best`; of all trials where that is None; None if no trial is."""
    spent = 0
    for num_timesteps, value in trials:
        spent += num_timesteps
        if best is not None and value >= best:
            return spent
    return spent if best is None else None


if __name__ == "__main__":
    main()
