"""Progress is one bar on a terminal and lines elsewhere, in env steps, and gets along with what else is printed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest
import pytorch_lightning as pl
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLTrainer
from lit_sb3_ray.lit import progress

ROOT = Path(__file__).parents[2]
COLUMNS = 120


def ppo():
    return PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")


def run_on_terminal(arguments, folder):
    """Runs a Python program on a terminal of its own.

    Returns:
        The exit code, and the lines as they stand on the screen at the end.
    """
    screen, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    files = [(os.POSIX_SPAWN_DUP2, program, number) for number in (0, 1, 2)]
    before = Path.cwd()
    os.chdir(folder)
    try:
        pid = os.posix_spawn(sys.executable, [sys.executable, *arguments], environ, file_actions=files)
    finally:
        os.chdir(before)
        os.close(program)
    written = b""
    try:
        while part := os.read(screen, 65536):
            written += part
    except OSError:  # Linux tells so that the program has ended.
        pass
    os.close(screen)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, [shown(line) for line in written.decode().replace("\r\n", "\n").split("\n")]


def shown(line):
    """What a line looks like after all that was written over it."""
    cells = []
    for part in line.split("\r"):
        cells[: len(part)] = part
    return "".join(cells).rstrip()


def test_one_bar_on_a_terminal_beside_sb3s_table_and_the_log(tmp_path):
    arguments = "-m lit_sb3_ray train --algo ppo --env TinyCount-v0 --gym-packages tiny_envs -n 1500 --n-envs 1 --seed 0 -P"
    figures = "--eval-freq 500 --eval-episodes 1 -f logs -params n_steps:500 batch_size:500 n_epochs:1"
    (tmp_path / "c.yml").write_text("TinyCount-v0: {policy: MlpPolicy, n_timesteps: 1500}\n")
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
