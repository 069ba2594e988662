"""Run by a test in a process of its own: plays through the environments that rl_zoo3's ExperimentManager creates.

Usage: `python peer_envs.py CASES.json OUTPUT_FOLDER`. It is apart because importing rl_zoo3 changes gymnasium.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def play(env, steps, seed):
    """Plays random actions; returns observations, rewards and dones, one row a step."""
    rng = np.random.default_rng(seed)
    observations, rewards, dones = [env.reset()], [], []
    low, high = getattr(env.action_space, "low", None), getattr(env.action_space, "high", None)
    for _ in range(steps):
        if low is None:
            actions = rng.integers(env.action_space.n, size=env.num_envs)
        else:
            actions = rng.uniform(low, high, (env.num_envs, *low.shape)).astype(np.float32)
        observation, reward, done, _ = env.step(actions)
        observations.append(observation)
        rewards.append(reward)
        dones.append(done)
    samples = [space.sample() for space in env.get_attr("action_space")]
    env.close()
    return {
        "observations": np.array(observations),
        "rewards": np.array(rewards),
        "dones": np.array(dones),
        "samples": np.array(samples),
    }


def main(cases, output):
    from huggingface_sb3 import EnvironmentName
    from rl_zoo3.exp_manager import ExperimentManager
    from rl_zoo3.utils import get_wrapper_class
    from stable_baselines3.common.vec_env import DummyVecEnv

    for number, case in enumerate(cases):
        manager = object.__new__(ExperimentManager)
        manager.env_name = EnvironmentName(case["env_id"])
        manager.env_kwargs = manager.eval_env_kwargs = case["kwargs"]
        manager.env_wrapper = get_wrapper_class({"env_wrapper": case["env_wrapper"]})
        manager.vec_env_wrapper = get_wrapper_class({"vec_env_wrapper": case["vec_env_wrapper"]}, "vec_env_wrapper")
        manager.monitor_kwargs, manager.seed, manager.verbose, manager.trained_agent = {}, case["seed"], 0, ""
        manager.vec_env_class, manager.vec_env_kwargs = DummyVecEnv, {}
        manager.normalize, manager.normalize_kwargs = case["normalize"] is not None, case["normalize"] or {}
        manager.frame_stack = case["frame_stack"]
        manager.save_path = str(output / str(number))
        env = manager.create_envs(case["n_envs"], eval_env=case["eval_env"])
        np.savez(output / f"{number}.npz", **play(env, case["steps"], case["seed"]))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
