"""Progress is one bar on a terminal and lines elsewhere, in env steps, and gets along with what else is printed."""

from __future__ import annotations

import re

import pytest
import pytorch_lightning as pl
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import (
    CallbackList,
    EvalCallback,
    EveryNTimesteps,
    ProgressBarCallback,
)
from stable_baselines3.common.env_util import make_vec_env
from terminals import run_on_terminal
from tiny_callbacks import Printing

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.lit import progress


def ppo():
    return PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")


def test_one_bar_on_a_terminal_beside_sb3s_table_and_the_log_though_a_file_names_another(tmp_path):
    arguments = "-m lit_sb3_ray train --algo ppo --env TinyCount-v0 --gym-packages tiny_envs -n 1500 --n-envs 1 --seed 0 -P"
    figures = "--eval-freq 500 --eval-episodes 1 -f logs -params n_steps:500 batch_size:500 n_epochs:1"
    sb3s = "stable_baselines3.common.callbacks.ProgressBarCallback"
    (tmp_path / "c.yml").write_text(f"TinyCount-v0: {{policy: MlpPolicy, n_timesteps: 1500, callback: {sb3s}}}\n")
    code, lines = run_on_terminal([*arguments.split(), *figures.split(), "-conf", "c.yml"], tmp_path)
    assert code == 0, lines
    # All earlier drawings were wiped away for what was printed, line by line; the last one stays.
    (bar,) = [line for line in lines if "%|" in line]
    assert re.search(r"100%\|█+\| 1500/1500 .*step/s, ep_rew_mean=15\.00\]$", bar)
    assert sum(line.startswith("|    ep_rew_mean     | 15 ") for line in lines) == 3
    assert sum(line.startswith("Evaluation at ") for line in lines) == 3
    after = lines[lines.index(bar) + 1 :]
    assert [line.split(" ")[0] for line in after if line] == ["Checkpoint", "Saving", "Mean", "logs/ppo/TinyCount-v0_1"]


def test_plain_lines_elsewhere(capsys):
    RLTrainer(max_steps=40, enable_progress_bar=True).fit(ppo())
    told = capsys.readouterr()
    assert re.fullmatch(r"48 of 40 steps, [\d,]+ steps/s, ep_rew_mean 15\.00\n", told.err)
    assert told.out == ""


def test_lines_come_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(progress, "REDRAW", 0.0)
    RLTrainer(max_steps=3, enable_progress_bar=True).fit(ppo())
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{step} of 3 steps" for step in range(1, 17)]
    # The first episode of TinyCount-v0 ends at its fifth step, and is known at the sixth.
    assert [("ep_rew_mean" in line) for line in lines] == [step > 5 for step in range(1, 17)]


def test_slices_share_one_bar_that_ends_with_the_training(capsys):
    trainer, model = RLTrainer(max_steps=48, enable_progress_bar=True), ppo()
    (bar,) = trainer.bars
    trainer.fit(model, until=16)
    first = bar.bar
    trainer.fit(model, until=32)
    assert bar.bar is first is not None
    trainer.fit(model)
    assert bar.bar is None
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_stop_and_an_error_end_the_bar_too(capsys):
    class Stop(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, *_):
            pl_module.guard.requested = True

    class Break(pl.Callback):
        def on_train_batch_end(self, *_):
            raise RuntimeError("broken")

    stopped = RLTrainer(max_steps=48, enable_progress_bar=True, callbacks=Stop())
    stopped.fit(ppo())
    broken = RLTrainer(max_steps=48, enable_progress_bar=True, callbacks=Break())
    with pytest.raises(RuntimeError, match="broken"):
        broken.fit(ppo())
    assert stopped.bars[0].bar is broken.bars[0].bar is None
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == ["16 of 48 steps"] * 2


@pytest.mark.parametrize("kind", [pl.callbacks.TQDMProgressBar, pl.callbacks.RichProgressBar])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_bar_of_the_users_own_stands_alone(kind, enabled):
    evaluation = EvalCallback(make_vec_env("TinyCount-v0"), eval_freq=16, n_eval_episodes=1, verbose=0)
    trainer = RLTrainer(max_steps=32, enable_progress_bar=enabled, callbacks=kind(), rl_callback=evaluation)
    assert trainer.bars == []
    assert type(trainer.progress_bar_callback) is kind
    trainer.fit(ppo())


def test_no_bar_unless_asked_for(capsys):
    RLTrainer(max_steps=10).fit(ppo())
    assert capsys.readouterr().err == ""


PROGRAM = """
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList, ProgressBarCallback
import sys, tiny_envs
from terminals import run_on_terminal
from tiny_callbacks import Printing
from lit_sb3_ray.lit import RLTrainer
before = sys.stdout, sys.stderr
model = PPO("MlpPolicy", "TinyCount-v0", n_steps=50, batch_size=50, n_epochs=1, seed=0, device="cpu")
given = [CallbackList([ProgressBarCallback(), Printing()]), ProgressBarCallback()]
RLTrainer(max_steps=500, enable_progress_bar={enabled}, rl_callback=given).fit(model)
assert (sys.stdout, sys.stderr) == before
"""


@pytest.mark.parametrize("enabled", [True, False])
def test_one_bar_whatever_a_callback_prints_and_beside_sb3s(enabled, tmp_path):
    program = PROGRAM.format(enabled=enabled)
    (tmp_path / "program.py").write_text(program)
    code, lines = run_on_terminal(["program.py"], tmp_path)
    assert code == 0, lines
    lines = [line for line in lines if line]
    assert [bool(re.search(r"100%\|█+\| 500/500 .*step/s", line)) for line in lines if "%" in line] == [True], lines
    printed = [f"{text} {step}" for step in range(100, 501, 100) for text in ("printed", "begun ended", "told", "and")]
    assert [line for line in lines if "%" not in line] == [*printed, "last"]


def test_a_terminal_without_columns_gets_lines(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.format(enabled=True))
    code, lines = run_on_terminal(["program.py"], tmp_path, columns=0)
    assert code == 0, lines
    assert lines[-2].startswith("500 of 500 steps")


def test_sb3s_bar_asks_for_the_one_bar_and_lightnings_goes_before_both(capsys):
    model = ppo()
    sb3s = ProgressBarCallback()
    nested = CallbackList([EveryNTimesteps(5, Printing()), CallbackList([sb3s])])
    trainer = RLTrainer(max_steps=16, rl_callback=nested)
    assert len(trainer.bars) == 1
    trainer.fit(model)
    assert not hasattr(sb3s, "pbar")
    assert nested.callbacks[1].callbacks == [sb3s]
    assert re.fullmatch(r"16 of 16 steps, .*\n", capsys.readouterr().err)
    lightnings = RLTrainer(max_steps=16, rl_callback=[sb3s], callbacks=pl.callbacks.TQDMProgressBar())
    assert lightnings.bars == []
    lightnings.fit(ppo())
    assert not hasattr(sb3s, "pbar")


def test_a_class_of_the_users_own_is_left_alone_and_stands_alone():
    class Own(ProgressBarCallback):
        steps = 0

        def _on_training_start(self):
            """Draws nothing."""

        def _on_step(self):
            self.steps += 1
            return True

        def _on_training_end(self):
            """Draws nothing."""

    own = Own()
    trainer = RLTrainer(max_steps=16, enable_progress_bar=True, rl_callback=[own])
    assert trainer.bars == []
    trainer.fit(ppo())
    assert own.steps == 16
