"""An iteration is one turn of an algorithm's own loop; a session knows when it is over."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from sb3_contrib import ARS, TQC, MaskablePPO
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.iteration import default_log_interval, finish, is_driven, iteration_of, start, takes_masks


class Diary(BaseCallback):
    def __init__(self, stop_at=None):
        super().__init__()
        self.calls, self.stop_at = [], stop_at

    def _on_training_start(self):
        self.calls.append("training start")

    def _on_rollout_end(self):
        self.calls.append("rollout end")

    def _on_training_end(self):
        self.calls.append("training end")

    def _on_step(self):
        return self.num_timesteps != self.stop_at


def ppo(n_envs=1, **kwargs):
    return PPO("MlpPolicy", make_vec_env("TinyCount-v0", n_envs), n_steps=8, batch_size=8, n_epochs=1, device="cpu", **kwargs)


def test_a_session_steps_to_its_budget_and_tells_the_callbacks():
    diary = Diary()
    session = start(ppo(n_envs=2), 40, [diary], log_interval=1)
    steps = []
    while not session.done:
        session.step()
        steps.append(session.algorithm.num_timesteps)
    finish(session)
    assert steps == [16, 32, 48]
    assert session.iteration == 3
    assert not session.stopped
    assert diary.calls == ["training start", *["rollout end"] * 3, "training end"]
    assert diary.locals["total_timesteps"] == 40


def test_a_callback_ends_it_in_the_middle_of_a_rollout():
    session = start(ppo(), 40, [Diary(stop_at=11)], log_interval=1)
    session.step()
    assert not session.done
    session.step()
    assert session.stopped
    assert session.done
    assert (session.algorithm.num_timesteps, session.iteration) == (11, 1)


def test_ars_heeds_a_callback_after_the_update():
    model = ARS("LinearPolicy", "TinyCount-v0", n_delta=1, device="cpu")
    session = start(model, 1000, [Diary(stop_at=7)], log_interval=1)
    session.step()
    assert session.stopped
    # Two episodes of an update, each of five steps and each played twice.
    assert model.num_timesteps == session.iteration * 10


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (ppo, ["collect_rollouts", "train"] * 2),
        (lambda: SAC("MlpPolicy", "TinyCount-v0", learning_starts=1, device="cpu"), ["collect_rollouts"] * 2 + ["train"]),
        (lambda: ARS("LinearPolicy", "TinyCount-v0", n_delta=1, device="cpu"), ["update"] * 2),
    ],
)
def test_the_parts_of_an_iteration_are_timed_and_only_updates_run_in_low_precision(make, parts):
    seen = []

    @contextmanager
    def note(name):
        seen.append(name)
        yield

    session = start(make(), 1000, [], log_interval=None)
    session.profile, session.autocast = note, lambda: note("autocast")
    session.step()
    session.step()
    expected = []
    for part in parts:
        expected += [part, "autocast"] if part == "train" else [part]
    assert seen == expected


def test_counting_goes_on_where_it_was():
    model = ppo()
    model.learn(16)
    session = start(model, 32, [], log_interval=None, reset_num_timesteps=False)
    session.step()
    assert model.num_timesteps == 24
    assert model._current_progress_remaining == 1 - 24 / 32
    again = start(model, 32, [], log_interval=None)
    again.step()
    assert model.num_timesteps == 8


def test_kinds_of_algorithms():
    assert takes_masks(MaskablePPO("MlpPolicy", "TinyMask-v0", device="cpu"))
    assert not takes_masks(ppo())
    assert not takes_masks(ARS("LinearPolicy", "TinyCount-v0", device="cpu"))
    assert is_driven(ppo())
    assert [default_log_interval(model) for model in (ppo(), TQC("MlpPolicy", "TinyCount-v0", device="cpu"))] == [1, 4]
    assert default_log_interval(DQN("MlpPolicy", "TinyMask-v0", device="cpu")) == 4


def test_a_loop_of_no_known_kind_is_refused():
    class Other:
        pass

    with pytest.raises(ConfigError, match="Other is neither on-policy, off-policy nor ARS"):
        iteration_of(Other())
