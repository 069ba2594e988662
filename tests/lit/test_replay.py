"""A replay buffer comes back from disk with the same transitions in the same places, and only rows in use are written."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.replay import load_buffer, save_buffer, used_bytes

SIZE, N_ENVS, LENGTH = 20, 2, 6
BOX = spaces.Box(-10.0, 10.0, (3,), np.float32)
ACTION = spaces.Box(-1.0, 1.0, (1,), np.float32)
DICT = spaces.Dict({"a": BOX, "b": spaces.Box(0, 255, (2,), np.uint8)})

KINDS = {
    "plain": (ReplayBuffer, BOX, {}),
    "memory-optimised": (ReplayBuffer, BOX, {"optimize_memory_usage": True, "handle_timeout_termination": False}),
    "dict": (DictReplayBuffer, DICT, {}),
    "n-step": (NStepReplayBuffer, BOX, {"n_steps": 3, "gamma": 0.9}),
    "her": (HerReplayBuffer, None, {"n_sampled_goal": 4, "goal_selection_strategy": "future", "copy_info_dict": True}),
}


def make(kind, size=SIZE, n_envs=N_ENVS):
    cls, space, options = KINDS[kind]
    if cls is HerReplayBuffer:
        env = make_vec_env("TinyGoal-v0", n_envs)
        space, options = env.observation_space, {**options, "env": env}
    return cls(size * n_envs, space, ACTION, device="cpu", n_envs=n_envs, **options)


def fill(buffer, steps, first=0):
    """Adds steps whose every number tells which step and env it is of; an episode has `LENGTH` steps."""

    def observe(step):
        def rows(space):
            values = np.arange(N_ENVS).reshape(-1, 1) * 100 + step + np.arange(int(np.prod(space.shape)))
            return (values % 9).astype(space.dtype)

        space = buffer.observation_space
        return {k: rows(s) for k, s in space.spaces.items()} if isinstance(space, spaces.Dict) else rows(space)

    for step in range(first, first + steps):
        done = np.full(N_ENVS, (step + 1) % LENGTH == 0)
        infos = [{"TimeLimit.truncated": bool(done[i]) and i == 1, "step": step} for i in range(N_ENVS)]
        actions, rewards = np.full((N_ENVS, 1), step % 3 - 1.0), np.full(N_ENVS, float(step))
        buffer.add(observe(step), observe(step + 1), actions, rewards, done, infos)


def contents(buffer):
    """All transitions that can be sampled, in order."""
    if isinstance(buffer, HerReplayBuffer):
        envs, rows = np.nonzero(np.ascontiguousarray(buffer.ep_length.T) > 0)
        samples = buffer._get_real_samples(rows, envs)
    else:
        rows = np.arange(buffer.size())
        if buffer.optimize_memory_usage and buffer.full:
            rows = np.delete(rows, buffer.pos)
        np.random.seed(0)
        samples = buffer._get_samples(rows)
    flat = []
    for name, value in zip(samples._fields, samples, strict=True):
        flat += [(f"{name}.{key}", item) for key, item in value.items()] if isinstance(value, dict) else [(name, value)]
    return {name: value.numpy() for name, value in flat if value is not None}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [LENGTH, 2 * LENGTH, 5 * LENGTH], ids=["begun", "half", "wrapped"])
def test_every_transition_comes_back(kind, steps, tmp_path):
    # Whole episodes: one that goes on is closed, since its envs start anew.
    buffer, loaded = make(kind), make(kind)
    fill(buffer, steps)
    save_buffer(buffer, tmp_path / "buffer.pkl")
    load_buffer(loaded, tmp_path / "buffer.pkl")
    assert (loaded.pos, loaded.full, loaded.size()) == (buffer.pos, buffer.full, buffer.size())
    before, after = contents(buffer), contents(loaded)
    assert before
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values, err_msg=name)
    # Both go on alike.
    fill(buffer, 2 * LENGTH, steps)
    fill(loaded, 2 * LENGTH, steps)
    for name, values in contents(buffer).items():
        np.testing.assert_array_equal(contents(loaded)[name], values, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_sampling_draws_the_same(kind, tmp_path):
    buffer, loaded = make(kind), make(kind)
    fill(buffer, 2 * LENGTH)
    save_buffer(buffer, tmp_path / "buffer.pkl")
    load_buffer(loaded, tmp_path / "buffer.pkl")
    drawn = []
    for source in (buffer, loaded):
        np.random.seed(3)
        drawn.append(source.sample(16).rewards.numpy())
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_in_progress_ends_with_its_last_transition(kind, tmp_path):
    buffer, loaded = make(kind), make(kind)
    fill(buffer, LENGTH + 3)
    save_buffer(buffer, tmp_path / "buffer.pkl")
    load_buffer(loaded, tmp_path / "buffer.pkl")
    if kind == "her":
        # HER takes goals from whole episodes only; the cut one is whole now.
        assert len(contents(loaded)["rewards"]) == N_ENVS * (LENGTH + 3)
        return
    fill(loaded, LENGTH, first=100)
    last = LENGTH + 2
    if kind == "memory-optimised":
        assert loaded.dones[last].all()
    else:
        assert loaded.timeouts[last].all()
    assert loaded.rewards[last + 1].tolist() == [100.0] * N_ENVS


@pytest.mark.parametrize("kind", KINDS)
def test_only_rows_in_use_are_written(kind, tmp_path):
    small, large = make(kind), make(kind, size=2000)
    fill(small, LENGTH)
    fill(large, LENGTH)
    save_buffer(small, tmp_path / "small.pkl")
    save_buffer(large, tmp_path / "large.pkl")
    assert used_bytes(small) == used_bytes(large)
    assert abs((tmp_path / "large.pkl").stat().st_size - (tmp_path / "small.pkl").stat().st_size) < 200


@pytest.mark.parametrize("other", [{"size": SIZE + 1}, {"n_envs": 1}])
def test_a_buffer_of_another_shape_is_refused(other, tmp_path):
    buffer = make("plain")
    fill(buffer, LENGTH)
    save_buffer(buffer, tmp_path / "buffer.pkl")
    with pytest.raises(ConfigError, match=r"a buffer of 20 rows and 2 envs cannot go on with \d+ rows and \d envs"):
        load_buffer(make("plain", **other), tmp_path / "buffer.pkl")
