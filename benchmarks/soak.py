"""What a long run of RayVecEnv keeps: memory, object store, file descriptors, /dev/shm, processes.

    python benchmarks/soak.py [--steps 2000000] [--cycles 200] [--n-envs 8] [--json FOLDER]

First one RayVecEnv takes all the steps, then one after another is opened, stepped for a moment and closed; then as many bare
Ray actors are started and killed, which tells what of it is Ray's. Each quantity is looked at on the way; the table has its
first and last value and its slope, by least squares without the first third. Other programs must leave /dev/shm alone
meanwhile.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from comparison import report

from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

LOOKS = 20
WARM_UP = 3  # openings before the first look: Ray starts workers that it keeps
QUANTITIES = ("learner MB", "actors MB", "object store MB", "descriptors", "/dev/shm entries", "processes")

Samples = list[dict[str, float]]


def main() -> None:
    """Runs both parts and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2_000_000, help="env steps of the first part")
    parser.add_argument("--cycles", type=int, default=200, help="openings of the second part")
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--json", type=Path, default=None, help="folder for the JSON file")
    args = parser.parse_args()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    parts = {
        f"{args.steps:,} steps": step_for_long(args.n_envs, args.steps),
        f"{args.cycles} openings": open_and_close(args.n_envs, args.cycles),
        f"{args.cycles} idle actors": start_and_kill(args.cycles),
    }
    rows = [[part, name, *figures] for part, samples in parts.items() for name, figures in trends(samples).items()]
    path = None if args.json is None else args.json / "soak.json"
    columns = ["part", "", "before", "after", "slope over the part"]
    report("What a long run keeps", columns, rows, path, steps=args.steps, cycles=args.cycles, samples=parts)
    ray.shutdown()


def step_for_long(n_envs: int, steps: int, looks: int = LOOKS, **arguments: Any) -> Samples:
    """Steps one RayVecEnv.

    Args:
        n_envs: How many CartPoles.
        steps: Env steps in all.
        looks: How often to look.
        **arguments: Further ones of the RayVecEnv.

    Returns:
        What was seen, from the first steps to the last.
    """
    actions = np.random.default_rng(0).integers(0, 2, (1000, n_envs))
    venv = RayVecEnv([build] * n_envs, **arguments)
    try:
        venv.reset()
        actors = {pid for pid in venv.env_method("process") if pid != os.getpid()}
        for number in range(1000):
            venv.step(actions[number])
        samples = [look(actors)]
        for _ in range(looks):
            for number in range(steps // n_envs // looks):
                venv.step(actions[number % 1000])
            samples.append(look(actors))
    finally:
        venv.close()
    return samples


def open_and_close(n_envs: int, cycles: int, looks: int = LOOKS, **arguments: Any) -> Samples:
    """Opens, steps and closes one RayVecEnv after another; looks while none is open.

    Args:
        n_envs: How many CartPoles each has.
        cycles: How many to open.
        looks: How often to look.
        **arguments: Further ones of each RayVecEnv.

    Returns:
        What was seen.
    """

    def play() -> None:
        venv = RayVecEnv([build] * n_envs, **arguments)
        venv.reset()
        for _ in range(20):
            venv.step(np.zeros(n_envs, np.int64))
        venv.close()

    return repeat(play, cycles, looks)


def start_and_kill(cycles: int, looks: int = LOOKS) -> Samples:
    """Starts and kills as many actors that do nothing: what Ray itself keeps of each."""

    def live() -> None:
        actor = ray.remote(num_cpus=0.1)(Idle).remote()
        ray.get(actor.answer.remote())
        ray.kill(actor)

    return repeat(live, cycles, looks)


class Idle:
    """An actor that does nothing."""

    def answer(self) -> None:
        """Answers."""


def repeat(action: Callable[[], None], cycles: int, looks: int) -> Samples:
    """Does something again and again, and looks on the way."""
    samples = []
    for number in range(-WARM_UP, cycles + 1):
        if number >= 0 and number % max(1, cycles // looks) == 0:
            samples.append(look(set()))
        if number < cycles:
            action()
    return samples


def trends(samples: Sequence[dict[str, float]]) -> dict[str, tuple[float, float, float]]:
    """Sums samples up: for each quantity the first value, the last, and what a straight line gains over the whole part."""
    late = len(samples) // 3
    found = {}
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        slope = np.polyfit(np.arange(late, len(values)), values[late:], 1)[0] if len(values) - late > 1 else 0.0
        found[name] = (values[0], values[-1], float(slope) * (len(values) - 1))
    return found


def look(actors: set[int]) -> dict[str, float]:
    """Looks at every quantity once; `actors` are the processes of open envs."""
    total, free = (count().get("object_store_memory", 0.0) for count in (ray.cluster_resources, ray.available_resources))
    values = (
        resident(os.getpid()),
        sum(resident(pid) for pid in actors),
        (total - free) / 1e6,
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/dev/shm")),
        processes(),
    )
    return dict(zip(QUANTITIES, values, strict=True))


def resident(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processes() -> int:
    """Counts the processes that descend from this one, Ray's own among them, and guards of actors wherever they are."""
    parents, guards = {}, 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            parents[int(name)] = int(parent)
            guards += b"vec/guard.py" in command
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return len(found) - 1 + guards


class Named(gym.Wrapper[Any, Any, Any, Any]):
    """Tells which process it is in."""

    def process(self) -> int:
        """Gives the process id."""
        return os.getpid()


def build() -> gym.Env[Any, Any]:
    """Builds a CartPole, without SB3's Monitor, which keeps a record of every episode."""
    return Named(gym.make("CartPole-v1"))


if __name__ == "__main__":
    main()
