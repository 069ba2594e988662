"""Speed of training: the whole command against rl_zoo3's, `RLTrainer.fit` against `learn()`, `--fast`, and `--async-eval`.

    python benchmarks/train.py [--rounds 3] [--steps 50000] [--only command fit fast async] [--json benchmarks/results]

Both contenders of a row run in turns in one go. `fit` and `learn()` end with the same weights, which is checked, and so do
runs with and without `--async-eval`, whose evaluations are compared, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison import alternate, median, report

KINDS = ("command", "fit", "fast", "async")
# Lightning's set-up may take this long, in seconds, before it counts against `fit`.
SET_UP = 0.5
SMALL = {"learning_starts": 100}
CASES: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    # algorithm: class, env, envs, env steps, hyperparameters (PPO's sizes as packaged for CartPole-v1)
    "ppo": (
        "ppo",
        "CartPole-v1",
        8,
        25_000,
        {"n_steps": 32, "batch_size": 256, "n_epochs": 20},
    ),
    "a2c": ("a2c", "CartPole-v1", 8, 25_000, {"ent_coef": 0.0}),
    "trpo": ("trpo", "CartPole-v1", 2, 8_000, {"n_steps": 512, "batch_size": 512}),
    "ppo_lstm": ("ppo_lstm", "CartPole-v1", 4, 2_000, {"n_steps": 64, "n_epochs": 4}),
    "ppo_mask": ("ppo_mask", "CartPole-v1", 8, 10_000, {"n_steps": 32, "batch_size": 256, "n_epochs": 20}),
    "dqn": ("dqn", "CartPole-v1", 1, 15_000, {"learning_starts": 1000, "train_freq": 256, "gradient_steps": 128}),
    "dqn, every 4 steps": ("dqn", "CartPole-v1", 1, 10_000, {"learning_starts": 100, "train_freq": 4}),
    "qrdqn": ("qrdqn", "CartPole-v1", 1, 6_000, {"learning_starts": 100, "train_freq": 4}),
    "sac": ("sac", "Pendulum-v1", 1, 1_500, SMALL),
    "td3": ("td3", "Pendulum-v1", 1, 1_500, SMALL),
    "ddpg": ("ddpg", "Pendulum-v1", 1, 1_500, SMALL),
    "tqc": ("tqc", "Pendulum-v1", 1, 1_000, SMALL),
    "crossq": ("crossq", "Pendulum-v1", 1, 800, SMALL),
    "ars": ("ars", "CartPole-v1", 1, 30_000, {"n_delta": 2}),
}


def main() -> None:
    """Runs the comparisons asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50_000, help="env steps of the whole command")
    parser.add_argument("--only", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--algos", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON files")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if "command" in args.only:
        compare_commands(args.rounds, args.steps, args.json)
    if "fit" in args.only:
        compare_loops(args.rounds, args.algos, args.json)
    if "fast" in args.only:
        compare_fast(args.rounds, args.json)
    if "async" in args.only:
        compare_evaluations(args.rounds, 4 * args.steps, args.json)


def compare_commands(rounds: int, steps: int, folder: Path | None) -> None:
    """The whole command, process start to exit, and its start-up: the same with one rollout to do."""
    rows, figures = [], {}
    for name, budget in (("start-up", 1), (f"{steps:,} steps", steps)):
        times = alternate(
            {"rl_zoo3": _command("rl_zoo3.train", budget), "ours": _command("lit_sb3_ray", budget, "train")}, rounds
        )
        figures[name] = times
        peer, ours = median(times["rl_zoo3"]), median(times["ours"])
        rows.append([name, peer, ours, peer / ours])
    columns = ["ppo CartPole-v1", "rl_zoo3 s", "ours s", "times faster"]
    report("Whole command, wall-clock", columns, rows, folder and folder / "train_command.json", figures=figures)


def compare_loops(rounds: int, algos: list[str], folder: Path | None) -> None:
    """`RLTrainer.fit` against `learn()`, same seed and weights, one thread."""
    rows, figures = [], {}
    for name in algos:
        ends: dict[str, Any] = {}
        times = alternate({"learn": _learn(name, ends), "fit": _fit(name, ends)}, rounds)
        figures[name] = times
        steps = CASES[name][3]
        learn, fit = median(times["learn"]), median(times["fit"])
        rows.append([name, steps / learn, steps / fit, learn / fit, "same" if _same(ends) else "DIFFERENT"])
    columns = ["algorithm", "learn() steps/s", "fit steps/s", "fit / learn()", "weights"]
    report("Loop", columns, rows, folder and folder / "train_loop.json", figures=figures)


def compare_fast(rounds: int, folder: Path | None) -> None:
    """`learn()` against `fit` with `fast`, for PPO."""
    times = alternate({"learn": _learn("ppo", {}), "fast": _fit("ppo", {}, fast=True)}, rounds)
    steps = CASES["ppo"][3]
    learn, fast = median(times["learn"]), median(times["fast"])
    columns = ["algorithm", "learn() steps/s", "--fast steps/s", "ratio"]
    rows = [["ppo", steps / learn, steps / fast, learn / fast]]
    report("--fast", columns, rows, folder and folder / "train_fast.json", figures=times)


def compare_evaluations(rounds: int, steps: int, folder: Path | None) -> None:
    """Training with evaluations that it waits for against `--async-eval`, from the first env step to the last result."""
    ends: dict[str, Any] = {}
    contenders = {name: _evaluated(steps, ends, is_async=name == "async") for name in ("waiting", "async")}
    # A Ray for all rounds: what is compared is training, not the start of a cluster.
    _evaluated(steps // 10, {}, is_async=True)(0)
    times = alternate(contenders, rounds)
    waiting, ours = median(times["waiting"]), median(times["async"])
    spent = median([ends["waiting", number][1] for number in range(rounds)])
    same = all(ends["waiting", number][0] == ends["async", number][0] for number in range(rounds))
    row = ["ppo CartPole-v1", waiting, ours, waiting - ours, (waiting - ours) / spent, "same" if same else "DIFFERENT"]
    columns = ["20 evaluations of 20 episodes", "waiting s", "async s", "saved s", "of evaluations", "results"]
    report("--async-eval", columns, [row], folder and folder / "train_async.json", figures=times)


def _evaluated(steps: int, ends: dict[str, Any], *, is_async: bool) -> Callable[[int], float]:
    def run(number: int) -> float:
        from lit_sb3_ray import ExperimentManager
        from lit_sb3_ray.experiment.evaluations import EvaluationCallback

        spent = 0.0
        original = EvaluationCallback._evaluate

        def timed(callback: Any) -> Any:
            nonlocal spent
            begun = time.perf_counter()
            result = original(callback)
            spent += time.perf_counter() - begun
            return result

        with tempfile.TemporaryDirectory() as folder:
            manager = ExperimentManager(
                None, "ppo", "CartPole-v1", folder, n_timesteps=steps, eval_freq=max(1, steps // 20), n_eval_episodes=20,
                seed=number, verbose=0, device="cpu", num_threads=1, vec_env_type="dummy", async_eval=is_async,
            )  # fmt: skip
            model = manager.setup_experiment()
            EvaluationCallback._evaluate = timed  # type: ignore[method-assign]
            begun = time.perf_counter()
            try:
                manager.learn(model)
            finally:
                EvaluationCallback._evaluate = original  # type: ignore[method-assign]
            elapsed = time.perf_counter() - begun
            result = (manager.run.evaluations.read_bytes(), _weights(model).tolist())
        ends["async" if is_async else "waiting", number] = (result, spent)
        return elapsed

    return run


def _command(module: str, steps: int, *words: str) -> Callable[[int], float]:
    def run(number: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            flags = ["--algo", "ppo", "--env", "CartPole-v1", "-n", str(steps), "--eval-freq", "-1", "--seed", str(number)]
            command = [sys.executable, "-m", module, *words, *flags, "-f", folder]
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return time.perf_counter() - begun

    return run


def _model(name: str, seed: int) -> Any:
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    from lit_sb3_ray import ALGOS

    torch.set_num_threads(1)
    algo, env_id, n_envs, _, kwargs = CASES[name]
    policy = {"ppo_lstm": "MlpLstmPolicy", "ars": "LinearPolicy"}.get(algo, "MlpPolicy")
    return ALGOS[algo](policy, make_vec_env(env_id, n_envs, seed=seed), seed=seed, device="cpu", **kwargs)


def _learn(name: str, ends: dict[str, Any]) -> Callable[[int], float]:
    def run(number: int) -> float:
        model = _model(name, number)
        masking = {"use_masking": False} if CASES[name][0] == "ppo_mask" else {}
        begun = time.perf_counter()
        model.learn(CASES[name][3], **masking)
        elapsed = time.perf_counter() - begun
        ends["learn", number] = _weights(model)
        return elapsed

    return run


def _fit(name: str, ends: dict[str, Any], *, fast: bool = False) -> Callable[[int], float]:
    def run(number: int) -> float:
        import pytorch_lightning as pl

        from lit_sb3_ray import RLTrainer

        class Started(pl.Callback):
            at = 0.0

            def on_train_start(self, trainer: Any, pl_module: Any) -> None:
                self.at = time.perf_counter()

        model, started = _model(name, number), Started()
        begun = time.perf_counter()
        RLTrainer(max_steps=CASES[name][3], callbacks=[started], fast=fast, use_masking=False).fit(model)
        elapsed = time.perf_counter() - begun
        ends["fit", number] = _weights(model)
        return elapsed - min(started.at - begun, SET_UP)

    return run


def _weights(model: Any) -> Any:
    import torch

    return torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


def _same(ends: dict[str, Any]) -> bool:
    return all((ends["fit", number] == weights).all() for (name, number), weights in ends.items() if name == "learn")


if __name__ == "__main__":
    main()
