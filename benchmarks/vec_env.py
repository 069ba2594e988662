"""Env steps per second of RayVecEnv and of what else steps environments side by side.

    python benchmarks/vec_env.py [--only steps nodes ppo] [--envs CartPole-v1 ...] [--n-envs 1 4 8 16] [--rounds 5]
                                 [--seconds 0.5] [--ppo-steps 50000] [--json FOLDER]

`steps`: all contenders of a row are open at the same time and play in turns. `gap` leaves 0.4 ms between steps, as a policy
would, and does not count them. The limit is DummyVecEnv times the processors; the last columns say how close `auto` comes.
`nodes`: two actors on this node against one here and one on a second node, which is a Ray node on this machine.
`ppo`: the whole command, `lit-sb3-ray train --vec-env ray` against rl_zoo3's `--vec-env subproc`, process start to exit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from comparison import alternate, median, report
from gymnasium.vector import AsyncVectorEnv
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from lit_sb3_ray.scale.processors import usable_cpus
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

ENVS = ("CartPole-v1", "HalfCheetah-v5", "ALE/Pong-v5")
GAP = 4e-4
# Actors must fit Ray's count of CPUs while all contenders are open; what they use is what the machine has.
ACTOR_CPUS = 0.1


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--envs", nargs="+", default=list(ENVS))
    parser.add_argument("--n-envs", nargs="+", type=int, default=[1, 4, 8, 16])
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn")
    parser.add_argument("--ppo-steps", type=int, default=50_000, help="env steps of the whole command")
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON files")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in args.only:
        PARTS[part](args)


def compare_steps(args: argparse.Namespace) -> None:
    """Every environment and number of environments asked for."""
    ray.init(address="local", num_cpus=16, include_dashboard=False, log_to_driver=False)
    rows, figures = [], {}
    for env_id in args.envs:
        for n_envs in args.n_envs:
            found = measure(env_id, n_envs, args.contenders, args.rounds, args.seconds)
            figures[f"{env_id}, n={n_envs}"] = found
            rows.extend(summary(env_id, n_envs, found))
            print(*rows[-2:], sep="\n", flush=True)
    columns = ["env", "n", "", *args.contenders, "1/subproc", "auto/subproc", "auto/dummy", "of the limit"]
    path = None if args.json is None else args.json / "vec_env.json"
    report("env steps per second", columns, rows, path, rounds=args.rounds, seconds=args.seconds, figures=figures)
    ray.shutdown()


def compare_nodes(args: argparse.Namespace) -> None:
    """Eight environments in two actors, on one node or two."""
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 100_000_000}
    rows, figures = [], {}
    # Ray's sockets need a short path; the address in it is found by no other process.
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder
        head = {"num_cpus": 4, "include_dashboard": False, **memory}
        cluster = Cluster(initialize_head=True, connect=True, head_node_args=head)
        try:
            cluster.add_node(num_cpus=2, **memory)
            cluster.wait_for_nodes()
            for env_id in args.envs:
                builders = [partial(build, env_id)] * 8
                actions = sample_actions(builders[0], 8)
                # Two of the head's CPUs are left when the first is open, so the second's other actor goes elsewhere.
                with ExitStack() as stack:
                    venvs = {
                        name: stack.enter_context(opened(RayVecEnv(builders, envs_per_actor=4, num_cpus_per_actor=cpus)))
                        for name, cpus in (("one node", 1), ("two nodes", 2))
                    }
                    turns = {name: partial(turn, venv, actions, args.seconds, 0.0) for name, venv in venvs.items()}
                    found = figures[env_id] = alternate(turns, args.rounds)
                one, two = median(found["one node"]), median(found["two nodes"])
                rows.append([env_id, one, two, two / one])
        finally:
            ray.shutdown()
            cluster.shutdown()
            del os.environ["RAY_TMPDIR"]
    path = None if args.json is None else args.json / "vec_env_nodes.json"
    report("env steps per second, n=8, 2 actors", ["env", "one node", "two nodes", "ratio"], rows, path, figures=figures)


def compare_ppo(args: argparse.Namespace) -> None:
    """PPO on CartPole-v1 as packaged, the whole command."""
    steps = args.ppo_steps
    contenders = {
        "rl_zoo3, subproc": partial(command_speed, ["rl_zoo3.train", "--vec-env", "subproc"], steps),
        "ours, ray": partial(command_speed, ["lit_sb3_ray", "train", "--vec-env", "ray"], steps),
    }
    figures = alternate(contenders, args.rounds)
    medians = {name: median(values) for name, values in figures.items()}
    ratio = medians["ours, ray"] / medians["rl_zoo3, subproc"]
    path = None if args.json is None else args.json / "vec_env_ppo.json"
    columns = ["ppo CartPole-v1", *(f"{name}, steps/s" for name in medians), "ratio"]
    report("Whole command", columns, [[f"{steps:,} steps", *medians.values(), ratio]], path, figures=figures)


def command_speed(words: Sequence[str], steps: int, number: int) -> float:
    """Trains by a command; returns env steps per second, its start and end included."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--algo", "ppo", "--env", "CartPole-v1", "-n", str(steps), "--eval-freq", "-1", "--seed", str(number)]
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", *words, *flags, "-f", folder],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return steps / (time.perf_counter() - begun)


def measure(env_id: str, n_envs: int, names: Sequence[str], rounds: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """Lets contenders play in turns; returns all figures, back to back and with the gap."""
    builders = [partial(build, env_id)] * n_envs
    with ExitStack() as stack:
        venvs = {name: stack.enter_context(opened(CONTENDERS[name](builders))) for name in names}
        actions = sample_actions(builders[0], n_envs)
        return {
            kind: alternate({name: partial(turn, venv, actions, seconds, gap) for name, venv in venvs.items()}, rounds)
            for kind, gap in (("back to back", 0.0), ("gap", GAP))
        }


def summary(env_id: str, n_envs: int, found: dict[str, dict[str, list[float]]]) -> list[list[Any]]:
    """Makes a row of medians and ratios for each kind."""
    rows = []
    for kind, figures in found.items():
        medians = {name: median(values) for name, values in figures.items()}
        ratios = [
            ratio(medians, "ray, 1 an actor", "subproc"),
            ratio(medians, "ray, auto", "subproc"),
            ratio(medians, "ray, auto", "dummy"),
            ratio(medians, "ray, auto", "dummy", usable_cpus()),
        ]
        rows.append([env_id, str(n_envs), kind, *medians.values(), *ratios])
    return rows


def ratio(medians: dict[str, float], name: str, other: str, times: float = 1.0) -> float | str:
    """Compares two contenders, if both took part."""
    return medians[name] / (medians[other] * times) if name in medians and other in medians else ""


def turn(venv: Any, actions: np.ndarray[Any, Any], seconds: float, gap: float, number: int) -> float:
    """Plays for some time; returns env steps per second of stepping."""
    steps, spent = 0, 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        venv.step(actions[steps % len(actions)])
        spent += time.perf_counter() - start
        steps += 1
        until = time.perf_counter() + gap
        while gap and time.perf_counter() < until:
            pass
    return steps * actions.shape[1] / spent


def build(env_id: str) -> gym.Env[Any, Any]:
    """Builds an environment as SB3 users do."""
    if env_id.startswith("ALE/"):
        import ale_py  # noqa: F401 (registers the games)

        return AtariWrapper(Monitor(gym.make(env_id, frameskip=1)))
    return Monitor(gym.make(env_id))


def sample_actions(builder: Callable[[], gym.Env[Any, Any]], n_envs: int) -> np.ndarray[Any, Any]:
    """Draws the actions of some steps."""
    env = builder()
    env.action_space.seed(0)
    actions = np.stack([[env.action_space.sample() for _ in range(n_envs)] for _ in range(100)])
    env.close()
    return actions


class OneCallPerEnv:
    """The obvious way: a Ray actor for each environment, called once a step."""

    def __init__(self, builders: Sequence[Callable[[], gym.Env[Any, Any]]]) -> None:
        actor = ray.remote(num_cpus=ACTOR_CPUS)(_Actor)
        self.actors = [actor.remote(builder) for builder in builders]

    def reset(self) -> None:
        """Resets all."""
        ray.get([actor.reset.remote() for actor in self.actors])

    def step(self, actions: np.ndarray[Any, Any]) -> tuple[Any, ...]:
        """Steps all."""
        results = ray.get([actor.step.remote(action) for actor, action in zip(self.actors, actions, strict=True)])
        observations, rewards, dones, infos = zip(*results, strict=True)
        return np.stack(observations), np.array(rewards), np.array(dones), infos

    def close(self) -> None:
        """Ends the actors."""
        for actor in self.actors:
            ray.kill(actor)


class _Actor:
    def __init__(self, builder: Callable[[], gym.Env[Any, Any]]) -> None:
        self.env = builder()

    def reset(self) -> Any:
        return self.env.reset()[0]

    def step(self, action: Any) -> tuple[Any, ...]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            observation, _ = self.env.reset()
        return observation, reward, terminated or truncated, info


class opened:  # noqa: N801 (a context manager, as `contextlib.closing`)
    """Resets a contender, and closes it at the end."""

    def __init__(self, venv: Any) -> None:
        self.venv = venv

    def __enter__(self) -> Any:
        self.venv.reset()
        return self.venv

    def __exit__(self, *exception: object) -> None:
        self.venv.close()


CONTENDERS: dict[str, Callable[..., Any]] = {
    "dummy": DummyVecEnv,
    "subproc": SubprocVecEnv,
    "gymnasium async": AsyncVectorEnv,
    "one call an env": OneCallPerEnv,
    "ray, 1 an actor": partial(RayVecEnv, envs_per_actor=1, num_cpus_per_actor=ACTOR_CPUS),
    "ray, auto": partial(RayVecEnv, num_cpus_per_actor=ACTOR_CPUS),
}

PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "steps": compare_steps,
    "nodes": compare_nodes,
    "ppo": compare_ppo,
}

if __name__ == "__main__":
    main()
