"""A snapshot brings back everything that training has changed since, and shares nothing with it."""

from __future__ import annotations

import copy
import json
import random

import numpy as np
import pytest
import torch
from sb3_contrib import CrossQ
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray.lit.iteration import start
from lit_sb3_ray.lit.state import (
    callback_states,
    capture,
    restore,
    rng_states,
    set_callback_states,
    set_rng_states,
    walk,
)

OFF_POLICY = {"learning_starts": 8, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
MODELS = {
    "ppo": (PPO, "TinyCount-v0", {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "policy_kwargs": {"net_arch": [8]}}),
    "sac": (SAC, "TinyCount-v0", OFF_POLICY),
    "crossq": (CrossQ, "TinyCount-v0", OFF_POLICY),
    "dqn": (DQN, "CartPole-v1", {**OFF_POLICY, "exploration_fraction": 0.9}),
}


def session_of(name):
    cls, env_id, options = copy.deepcopy(MODELS[name])
    env = VecNormalize(make_vec_env(env_id, 2, seed=0))
    return start(cls("MlpPolicy", env, seed=0, device="cpu", **options), 1000, [Counter()], log_interval=None)


class Counter(BaseCallback):
    """Keeps plain values, and one that no file could hold."""

    def __init__(self):
        super().__init__()
        self.seen, self.live = [], object()

    def _on_step(self):
        self.seen.append(self.num_timesteps)
        return True


class Keeper(BaseCallback):
    """Says itself what it keeps."""

    def __init__(self):
        super().__init__()
        self.best = {"score": 1}

    def _on_step(self):
        return True

    def state_dict(self):
        return {"best": dict(self.best)}

    def load_state_dict(self, state):
        self.best = dict(state["best"])


def fingerprint(session):
    """All that a snapshot has to bring back, as text."""
    algorithm = session.algorithm
    networks = {
        name: value.tolist() if isinstance(value, torch.Tensor) else str(value)
        for name, value in torch.nn.Module.state_dict(algorithm.policy).items()
    }
    optimizers = [str(state) for name, state in algorithm.get_parameters().items() if "optimizer" in name]
    counters = [algorithm.num_timesteps, algorithm._n_updates, algorithm._current_progress_remaining]
    loose = [float(torch.as_tensor(getattr(algorithm, name, 0.0)).detach()) for name in ("log_ent_coef", "exploration_rate")]
    statistics = [algorithm.env.obs_rms.mean.tolist(), algorithm.env.ret_rms.var.tolist()]
    (counter,) = [item for item in walk(session.callback) if isinstance(item, Counter)]
    callbacks = [counter.seen, counter.n_calls, counter.num_timesteps]
    return json.dumps([networks, optimizers, counters, loose, statistics, rng_states(), callbacks])


@pytest.mark.parametrize("name", MODELS)
def test_a_snapshot_brings_everything_back(name):
    session = session_of(name)
    for _ in range(6):
        session.step()
    before = fingerprint(session)
    snapshot = capture(session.algorithm, session.callback, session.iteration, {"place": [1]})
    for _ in range(6):
        session.step()
    assert fingerprint(session) != before
    restore(snapshot, session.algorithm, session.callback)
    assert fingerprint(session) == before
    assert (snapshot.iteration, snapshot.extra) == (6, {"place": [1]})
    # The snapshot is as good a second time: training on has not written into it.
    session.step()
    restore(snapshot, session.algorithm, session.callback)
    assert fingerprint(session) == before


def test_generators_go_on_where_they_were():
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    np.random.standard_normal()
    states = json.loads(json.dumps(rng_states()))
    drawn = [random.random(), np.random.standard_normal(), np.random.random(), torch.rand(1).item()]
    random.seed(9), np.random.seed(9), torch.manual_seed(9)
    set_rng_states(states)
    assert [random.random(), np.random.standard_normal(), np.random.random(), torch.rand(1).item()] == drawn


def nested():
    evaluation = EvalCallback(make_vec_env("TinyCount-v0"), callback_on_new_best=Counter(), callback_after_eval=Keeper())
    return CallbackList([Counter(), EveryNTimesteps(5, CallbackList([Keeper()])), evaluation])


def test_callbacks_are_walked_with_all_that_hang_on_them():
    names = [type(item).__name__ for item in walk(nested())]
    first = ["CallbackList", "Counter", "EveryNTimesteps", "CallbackList", "Keeper"]
    assert names == [*first, "EvalCallback", "Keeper", "Counter"]


def test_callbacks_get_their_own_states_back():
    saved, fresh = nested(), nested()
    for number, item in enumerate(walk(saved)):
        item.n_calls = number
        if isinstance(item, Keeper):
            item.best = {"score": 10 * number}
        if isinstance(item, EvalCallback):
            item.best_mean_reward = np.float64(7.5)
    set_callback_states(fresh, json.loads(json.dumps(callback_states(saved))))
    found = walk(fresh)
    assert [item.n_calls for item in found if not isinstance(item, Keeper)] == [0, 1, 2, 3, 5, 7]
    assert [item.best["score"] for item in found if isinstance(item, Keeper)] == [40, 60]
    assert next(item for item in found if isinstance(item, EvalCallback)).best_mean_reward == 7.5


def test_a_callback_that_is_new_keeps_its_own_state():
    saved = CallbackList([Counter()])
    walk(saved)[1].n_calls = 5
    fresh = CallbackList([Keeper(), Counter(), Counter()])
    set_callback_states(fresh, callback_states(saved))
    assert [item.n_calls for item in walk(fresh)[1:]] == [0, 5, 0]
    assert walk(fresh)[1].best == {"score": 1}
