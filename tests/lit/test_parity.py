"""`RLTrainer.fit` does what the algorithm's own `learn()` does, bit for bit, whole and in slices.

Compared are the weights, the optimizers, all counters, the running statistics, the buffers, the generators of random numbers,
the callbacks' calls and the logger's dumps.
"""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.save_util import recursive_getattr
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her import HerReplayBuffer

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLModule, RLTrainer
from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.schedules import parse_schedule

SEED = 11
ON_POLICY = {"n_steps": 16, "policy_kwargs": {"net_arch": [8]}}
PPO = {**ON_POLICY, "batch_size": 8, "n_epochs": 2}
# Three rollouts of two envs, in slices that end before, at and after a rollout's last step.
ROLLOUTS, ROLLOUT_SLICES = 96, (1, 32, 33)
# 300 steps after learning starts (fewer where another thing is shown), in a buffer that is overwritten before they are over.
STEPS, FEWER, STEP_SLICES = 340, 130, (10, 41, 42, 100)
OFF_POLICY = {"learning_starts": 40, "batch_size": 8, "buffer_size": 100, "policy_kwargs": {"net_arch": [8]}}
LSTM = {"net_arch": [8], "lstm_hidden_size": 8}
HER = {
    "policy": "MultiInputPolicy",
    "replay_buffer_class": HerReplayBuffer,
    "replay_buffer_kwargs": {"n_sampled_goal": 4, "goal_selection_strategy": "future"},
}


@dataclass(frozen=True)
class Case:
    algo: str
    env_id: str
    kwargs: dict[str, Any]
    n_envs: int = 2
    normalize: dict[str, Any] | None = None
    steps: int = STEPS
    slices: tuple[int, ...] = STEP_SLICES
    noise: Callable[..., Any] | None = None
    learn_kwargs: dict[str, Any] = field(default_factory=dict)

    def build(self):
        def make(rank: int) -> gym.Env:
            env = gym.make(self.env_id)
            env.action_space.seed(SEED + rank)
            if self.env_id == "TinyMask-v0":
                from sb3_contrib.common.wrappers import ActionMasker

                env = ActionMasker(env, lambda inner: inner.unwrapped.allowed())
            return Monitor(env)

        env = DummyVecEnv([lambda rank=rank: make(rank) for rank in range(self.n_envs)])
        env.seed(SEED)
        if self.normalize is not None:
            env = VecNormalize(env, **self.normalize)
        # Copied, because SB3 writes into `policy_kwargs`.
        kwargs = {"policy": "MlpPolicy", **copy.deepcopy(self.kwargs)}
        if self.noise is not None:
            (size,) = env.action_space.shape
            kwargs["action_noise"] = self.noise(np.zeros(size), 0.2 * np.ones(size))
        return ALGOS[self.algo](env=env, seed=SEED, device="cpu", **kwargs)


def on_policy(algo: str, env_id: str = "CartPole-v1", **changed: Any) -> Case:
    options = {"n_envs": 2, "steps": ROLLOUTS, "slices": ROLLOUT_SLICES} | changed
    return Case(algo, env_id, **options)


def off_policy(algo: str, env_id: str = "Pendulum-v1", kwargs: dict[str, Any] | None = None, **changed: Any) -> Case:
    return Case(algo, env_id, {**OFF_POLICY, **(kwargs or {})}, **{"n_envs": 1, **changed})


def ars(**kwargs: Any) -> Case:
    # An update plays 2 * n_delta episodes, and the second and third are the slices.
    return Case("ars", "CartPole-v1", {"policy": "LinearPolicy", "n_delta": 3, **kwargs}, n_envs=1, steps=400, slices=(1, 150))


def schedule(text: str) -> Any:
    return parse_schedule(text, "test")


CASES = {
    # Each of the 13, plain.
    "a2c": on_policy("a2c", kwargs={**ON_POLICY, "n_steps": 5}, steps=30, slices=(1, 10, 11)),
    "ars": ars(),
    "crossq": off_policy("crossq", kwargs={"train_freq": 2}),
    "ddpg": off_policy("ddpg"),
    "dqn": off_policy("dqn", "CartPole-v1", {"target_update_interval": 50, "train_freq": 2}),
    "ppo": on_policy("ppo", kwargs=PPO),
    "ppo_lstm": on_policy("ppo_lstm", kwargs={**PPO, "policy": "MlpLstmPolicy", "policy_kwargs": LSTM}),
    "ppo_mask": on_policy("ppo_mask", "TinyMask-v0", kwargs=PPO),
    "qrdqn": off_policy("qrdqn", "CartPole-v1", {"policy_kwargs": {"net_arch": [8], "n_quantiles": 5}, "train_freq": 2}),
    "sac": off_policy("sac"),
    "td3": off_policy("td3"),
    "tqc": off_policy("tqc", kwargs={"train_freq": 2}),
    "trpo": on_policy("trpo", kwargs={**ON_POLICY, "batch_size": 8, "n_critic_updates": 2}),
    # Running statistics.
    "ppo, VecNormalize": on_policy("ppo", "Pendulum-v1", kwargs=PPO, normalize={"gamma": 0.9, "clip_reward": 2.0}),
    "ppo_lstm, VecNormalize": on_policy(
        "ppo_lstm", "Pendulum-v1", kwargs={**PPO, "policy": "MlpLstmPolicy", "policy_kwargs": LSTM}, normalize={}
    ),
    "sac, VecNormalize": off_policy("sac", normalize={"gamma": 0.9}),
    "ars, VecNormalize": Case("ars", "Pendulum-v1", {"n_delta": 2}, 1, {"norm_reward": False}, steps=2400, slices=(900,)),
    # Schedules: all that an algorithm may have.
    "ppo, schedules": on_policy(
        "ppo",
        kwargs={
            **PPO,
            "learning_rate": schedule("lin_0.01"),
            "clip_range": schedule("lin_0.2"),
            "clip_range_vf": schedule("lin_0.3_0.1"),
            "target_kl": 0.02,
        },
    ),
    "sac, schedules": off_policy("sac", kwargs={"learning_rate": schedule("lin_0.01")}, steps=FEWER),
    "ars, schedules": ars(learning_rate=schedule("lin_0.05"), delta_std=schedule("lin_0.1"), alive_bonus_offset=-0.5),
    "dqn, exploration": off_policy(
        "dqn",
        "CartPole-v1",
        {"exploration_fraction": 0.8, "exploration_final_eps": 0.3, "learning_rate": schedule("lin_0.01")},
    ),
    # Training that goes by episodes, or by as many steps as were collected.
    "td3, episodes": off_policy("td3", "TinyCount-v0", {"train_freq": (2, "episode"), "gradient_steps": -1}, steps=FEWER),
    "sac, episodes": off_policy("sac", kwargs={"train_freq": (1, "episode"), "gradient_steps": 20}, steps=600, slices=(1,)),
    "dqn, as many gradient steps": off_policy(
        "dqn", "CartPole-v1", {"train_freq": 7, "gradient_steps": -1}, n_envs=2, steps=FEWER
    ),
    "sac, no gradient steps": off_policy("sac", kwargs={"gradient_steps": 0}, steps=FEWER),
    # State-dependent exploration.
    "a2c, gSDE": on_policy("a2c", "Pendulum-v1", kwargs={**ON_POLICY, "use_sde": True, "sde_sample_freq": 4}),
    "ppo, gSDE": on_policy("ppo", "Pendulum-v1", kwargs={**PPO, "use_sde": True}),
    "sac, gSDE": off_policy(
        "sac", kwargs={"use_sde": True, "use_sde_at_warmup": True, "sde_sample_freq": 8, "train_freq": 8}, steps=FEWER
    ),
    "tqc, gSDE": off_policy("tqc", kwargs={"use_sde": True, "train_freq": 8, "gradient_steps": 8}, steps=FEWER),
    # Action noise.
    "td3, normal noise": off_policy("td3", noise=NormalActionNoise, steps=FEWER),
    "ddpg, Ornstein-Uhlenbeck noise": off_policy("ddpg", noise=OrnsteinUhlenbeckActionNoise, n_envs=2, steps=FEWER),
    # Several envs.
    "a2c, 4 envs": on_policy("a2c", kwargs=ON_POLICY, n_envs=4, steps=192),
    "ppo_mask, 3 envs": on_policy("ppo_mask", "TinyMask-v0", kwargs=PPO, n_envs=3, steps=144),
    "sac, 3 envs": off_policy("sac", n_envs=3, kwargs={"gradient_steps": -1}, steps=FEWER),
    "tqc, 2 envs and several-step returns": off_policy("tqc", n_envs=2, kwargs={"n_steps": 3}, steps=FEWER),
    # Hindsight.
    "sac, HER": off_policy("sac", "TinyGoal-v0", HER),
    "tqc, HER, VecNormalize, 2 envs": off_policy(
        "tqc", "TinyGoal-v0", HER, n_envs=2, normalize={"norm_reward": False}, steps=FEWER
    ),
    # Masks that the envs have and that are not asked for.
    "ppo_mask, unmasked": on_policy("ppo_mask", "TinyMask-v0", kwargs=PPO, learn_kwargs={"use_masking": False}),
    # A log interval other than the algorithm's own.
    "a2c, log every 3": on_policy("a2c", kwargs={**ON_POLICY, "n_steps": 4}, learn_kwargs={"log_interval": 3}),
    "sac, log every episode": off_policy("sac", "TinyCount-v0", steps=FEWER, learn_kwargs={"log_interval": 1}),
    "ppo, no logs": on_policy("ppo", kwargs=PPO, learn_kwargs={"log_interval": None}),
}


class CallsRecorder(BaseCallback):
    """Notes every call with the env step, and answers False from an env step on."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.calls: list[tuple[str, int, int]] = []
        self.stop_at = stop_at

    def _note(self, name: str) -> None:
        self.calls.append((name, self.num_timesteps, self.model.num_timesteps))

    def _on_training_start(self) -> None:
        assert {"total_timesteps", "log_interval", "tb_log_name", "reset_num_timesteps", "self"} <= self.locals.keys()
        self.calls.append(("budget", self.locals["total_timesteps"], self.model._total_timesteps))
        self._note("training_start")

    def _on_rollout_start(self) -> None:
        self._note("rollout_start")

    def _on_step(self) -> bool:
        self._note("step")
        return self.stop_at is None or self.num_timesteps < self.stop_at

    def _on_rollout_end(self) -> None:
        self._note("rollout_end")

    def _on_training_end(self) -> None:
        self._note("training_end")


class DumpsRecorder(KVWriter):
    """Notes what the logger dumps and when, timings excepted."""

    def __init__(self) -> None:
        self.dumps: list[tuple[int, dict[str, Any]]] = []

    def write(self, key_values, key_excluded, step=0) -> None:
        timeless = {key: value if key not in ("time/fps", "time/time_elapsed") else "..." for key, value in key_values.items()}
        self.dumps.append((step, timeless))

    def close(self) -> None:
        pass


@dataclass
class Run:
    model: Any
    calls: CallsRecorder
    dumps: DumpsRecorder

    def outcome(self) -> dict[str, Any]:
        """All that training leaves behind, as plain values that `==` compares bit for bit."""
        return {**state_of(self.model), "calls": self.calls.calls, "dumps": exact(self.dumps.dumps)}


def exact(value: Any) -> Any:
    """Tensors, arrays and floats as their bytes, so that equality is of bits and NaN equals itself."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, float | np.floating):
        return np.float64(value).tobytes()
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple | deque | np.ndarray):
        return [exact(item) for item in value]
    if isinstance(value, RunningMeanStd):
        return exact(vars(value))
    return value


def state_of(model: Any) -> dict[str, Any]:
    _, variables = model._get_torch_save_params()
    normalize = model.get_vec_normalize_env()
    state = {
        "parameters": model.get_parameters(),
        "variables": {name: recursive_getattr(model, name) for name in variables},
        "attributes": {name: value for name, value in vars(model).items() if is_plain(value) and name != "start_time"},
        "statistics": {}
        if normalize is None
        else {name: getattr(normalize, name) for name in ("obs_rms", "ret_rms", "returns")},
        "buffers": {name: rows_of(value) for name, value in vars(model).items() if isinstance(value, BaseBuffer)},
        "episodes": [(info["r"], info["l"]) for info in model.ep_info_buffer],
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    return exact(state)


def is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(is_plain(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(is_plain(item) for item in value)
    return isinstance(value, None | bool | int | float | str | np.generic | np.ndarray | torch.Tensor)


def rows_of(buffer: BaseBuffer) -> dict[str, Any]:
    return {name: value for name, value in vars(buffer).items() if is_plain(value)}


def prepare(case: Case, stop_at: int | None = None) -> Run:
    """A new algorithm, with the generators as its constructor has seeded them; to be trained at once."""
    model, dumps = case.build(), DumpsRecorder()
    model.set_logger(Logger(folder=None, output_formats=[dumps]))
    return Run(model, CallsRecorder(stop_at), dumps)


def learned(case: Case, stop_at: int | None = None) -> dict[str, Any]:
    run = prepare(case, stop_at)
    run.model.learn(case.steps, callback=run.calls, **case.learn_kwargs)
    return run.outcome()


def fitted(case: Case, slices: tuple[int, ...] = (), stop_at: int | None = None) -> dict[str, Any]:
    run = prepare(case, stop_at)
    trainer = RLTrainer(max_steps=case.steps, rl_callback=run.calls, **case.learn_kwargs)
    for until in (*slices, None):
        trainer.fit(run.model, until=until)
    return run.outcome()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def assert_equal(mine: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert mine.keys() == wanted.keys()
    for part, value in wanted.items():
        if isinstance(value, dict):
            assert mine[part].keys() == value.keys()
            assert [name for name in value if mine[part][name] != value[name]] == [], part
        else:
            assert mine[part] == value, part


def test_all_algorithms_are_among_the_cases():
    assert set(ALGOS) <= CASES.keys()
    assert all(CASES[name].algo == name for name in ALGOS)


@pytest.mark.parametrize("name", CASES)
def test_fit_equals_learn(name):
    case = CASES[name]
    before = exact(case.build().get_parameters())
    theirs = learned(case)
    assert (theirs["parameters"] == before) is (name == "sac, no gradient steps")
    assert_equal(fitted(case), theirs)
    assert_equal(fitted(case, case.slices), theirs)


@pytest.mark.parametrize("name", ["ppo", "ppo_mask", "sac", "td3, episodes"])
def test_a_callback_that_stops_ends_both_alike(name):
    case = CASES[name]
    theirs = learned(case, stop_at=60)
    assert theirs["calls"][-1][0] == "training_end"
    assert theirs["attributes"]["num_timesteps"] < case.steps
    assert_equal(fitted(case, stop_at=60), theirs)
    assert_equal(fitted(case, case.slices, stop_at=60), theirs)


@pytest.mark.parametrize("name", ["a2c", "ppo, schedules", "ppo_lstm, VecNormalize", "dqn, exploration", "sac, VecNormalize"])
def test_going_on_with_the_count_equals_learn(name):
    case = replace(CASES[name], steps=min(CASES[name].steps, FEWER))
    run = prepare(case)
    run.model.learn(case.steps, callback=run.calls)
    run.model.learn(case.steps, callback=run.calls, reset_num_timesteps=False)
    theirs = run.outcome()
    run = prepare(case)
    RLTrainer(max_steps=case.steps, rl_callback=run.calls).fit(run.model)
    budget = run.model.num_timesteps + case.steps
    second = RLTrainer(max_steps=budget, rl_callback=run.calls, reset_num_timesteps=False)
    second.fit(run.model, until=budget - 20)
    second.fit(run.model)
    assert run.model.num_timesteps >= budget
    assert_equal(run.outcome(), theirs)


def test_fit_of_a_module_equals_learn():
    case = CASES["ppo"]
    theirs, run = learned(case), prepare(case)
    module = RLModule(run.model)
    trainer = RLTrainer(max_steps=case.steps, rl_callback=[run.calls])
    assert trainer.fit(module, until=40) is run.model
    assert trainer.fit(module) is run.model
    assert_equal(run.outcome(), theirs)
