"""Trainings in processes of their own, which a test may signal, kill, or photograph while they run.

They are forked from one server that has imported everything, so that each starts in a fraction of a second.
"""

from __future__ import annotations

import csv
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.save_util import load_from_pkl, load_from_zip_file

CONTEXT: Any = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__, "lit_sb3_ray.cli.train", "lit_sb3_ray.experiment.manager", "sb3_contrib"])

COUNT = itertools.count()
QUIET = ("--device", "cpu", "--num-threads", "1", "--verbose", "0")
WRITES = {"open": 0, "os.rename": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0, "os.link": 1, "os.truncate": 0}
"""Audit events of what changes a folder, with the position of the path that changes."""


class SignalAt(BaseCallback):
    """Sends this process a signal at an env step."""

    def __init__(self, signum: int, step: int) -> None:
        super().__init__()
        self.signum = signum
        self.step = step
        self.sent = False

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.step and not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.signum)
        return True


class SignalIn(pl.Callback):
    """Sends this process SIGTERM in one of Lightning's hooks."""

    def __init__(self, hook: str) -> None:
        setattr(self, hook, self._send)

    def _send(self, *arguments: Any, **keywords: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class Training:
    """A training under way in a process.

    Attributes:
        process: The process.
        log: Where its output goes.
    """

    process: BaseProcess
    log: Path

    def wait_until(self, condition: Callable[[], Any], seconds: float = 60) -> Any:
        """Waits for something to become true while the process runs, and returns it."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert self.process.is_alive(), f"the training has ended: {self.log.read_text()}"
            assert time.monotonic() < deadline, f"it did not happen within {seconds} s: {self.log.read_text()}"
            time.sleep(0.005)
        return found

    def send(self, signum: int) -> None:
        """Sends a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signum)

    def wait(self, seconds: float = 120) -> int:
        """Waits for the end; the exit code, negative for a signal that killed it."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"still running after {seconds} s: {self.log.read_text()}"
        return self.process.exitcode

    def kill(self) -> None:
        """`kill -9`."""
        self.send(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL


def start(
    folder: Path,
    words: Sequence[str],
    callbacks: Sequence[BaseCallback | pl.Callback] = (),
    photographs: Path | None = None,
    killed_at: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> Training:
    """Starts `lit-sb3-ray train` in a folder.

    Args:
        folder: The working directory; made if need be.
        words: The flags.
        callbacks: Further callbacks.
        photographs: Where to copy the run folder to before each change of a file in it, from the first checkpoint on.
        killed_at: Which of these changes `kill -9` comes before.
        variables: Environment variables beside those of this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"output_{next(COUNT)}.txt"
    hook = None if photographs is None and killed_at is None else _BeforeChanges(folder, photographs, killed_at)
    process = CONTEXT.Process(
        target=_main, args=(folder, [*QUIET, *words], callbacks, log, hook, variables or {}), daemon=True
    )
    process.start()
    return Training(process, log)


def train(folder: Path, words: Sequence[str], callbacks: Sequence[BaseCallback | pl.Callback] = ()) -> Path:
    """Trains to the end; the run folder."""
    training = start(folder, words, callbacks)
    assert training.wait() == 0, training.log.read_text()
    return only_run(folder)


def resume(run: Path, *words: str, variables: Mapping[str, str] | None = None) -> Path:
    """Goes on with a run, in a process of its own, to the end; the run folder."""
    training = start(run.parents[2], ["--resume", str(run), *words], variables=variables)
    assert training.wait() == 0, training.log.read_text()
    return run


def only_run(folder: Path) -> Path:
    """The one run folder under a working directory."""
    (run,) = folder.glob("logs/*/*_1*")
    return run


def checkpoints(run: Path) -> list[int]:
    """The env steps of a run's checkpoints."""
    return sorted(int(path.name) for path in run.glob("checkpoints/*") if path.name.isdigit())


def episodes(run: Path) -> list[list[str]]:
    """All rows of a run's monitor files, without their time."""
    return [[path.name, *row[:2], *row[3:]] for path in sorted(run.glob("*.monitor.csv")) for row in _rows(path)[2:]]


def metrics(run: Path) -> list[dict[str, str]]:
    """The rows of `metrics.csv`."""
    return read_csv(run / "metrics.csv")


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by column."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def result(run: Path) -> dict[str, Any]:
    """All that a run has come to, without times: model, optimizers, statistics, logs, and its last checkpoint's state."""
    name = run.name.rpartition("_")[0]
    found: dict[str, Any] = {"episodes": episodes(run)}
    found["metrics"] = [
        {k: v for k, v in row.items() if not k.startswith("time/") or k.endswith("timesteps")} for row in metrics(run)
    ]
    if (run / "evaluations.npz").exists():
        with np.load(run / "evaluations.npz") as file:
            found["evaluations"] = {key: file[key] for key in file.files}
    for kind, model, statistics in (
        ("final", run / f"{name}.zip", run / name / "vecnormalize.pkl"),
        ("best", run / "best_model.zip", run / "best_model_vecnormalize.pkl"),
    ):
        if model.exists():
            found[kind] = weights(model)
        if statistics.exists():
            env = load_from_pkl(statistics)
            found[f"{kind} statistics"] = [vars(rms) for rms in (env.obs_rms, env.ret_rms)]
    last = run / "checkpoints" / str(checkpoints(run)[-1])
    found["state"] = json.loads((last / "state.json").read_text()) | {"extra": None, "metrics": None}
    found["checkpoint"] = weights(last / "model.zip")
    if (last / "replay_buffer.pkl").exists():
        found["buffer"] = load_from_pkl(last / "replay_buffer.pkl")
    return found


def weights(model: Path) -> dict[str, Any]:
    """Networks, optimizers, loose tensors and counters in a model's zip file."""
    data, parameters, variables = load_from_zip_file(model, device="cpu")
    assert data is not None
    counters = {k: data[k] for k in ("num_timesteps", "_n_updates", "_episode_num", "exploration_rate") if k in data}
    return {"parameters": parameters, "variables": variables, "counters": counters}


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two nested values differ, bit for bit."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differences(one[key], other[key], f"{where}/{key}")]
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        return [found for i, pair in enumerate(zip(one, other, strict=True)) for found in differences(*pair, f"{where}/{i}")]
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return [] if one.dtype == other.dtype and torch.equal(one, other) else [where]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return [] if one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else [where]
    return [] if type(one) is type(other) and (one == other or one != one) else [f"{where}: {one!r:.80} / {other!r:.80}"]


def _main(
    folder: Path,
    words: list[str],
    callbacks: Sequence[BaseCallback | pl.Callback],
    log: Path,
    hook: _BeforeChanges | None,
    variables: Mapping[str, str],
) -> None:
    os.environ.update(variables)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    if hook is not None:
        sys.addaudithook(hook)
    sys.exit(_train(words, callbacks))


def _train(words: list[str], callbacks: Sequence[BaseCallback | pl.Callback]) -> int:
    from lit_sb3_ray.cli import main
    from lit_sb3_ray.cli import train as command
    from lit_sb3_ray.cli.flags import parse_flags
    from lit_sb3_ray.cli.train_parser import build_parser
    from lit_sb3_ray.experiment.arguments import train_arguments

    if not callbacks:
        return main.main(["train", *words])
    manager = command.build_manager(command.read_settings(parse_flags(build_parser(), words, train_arguments())))
    manager.callbacks += callbacks
    model = manager.setup_experiment()
    assert model is not None
    manager.learn(model)
    manager.save_trained_model(model)
    return 0 if manager.stop_signal is None else 128 + manager.stop_signal


class _BeforeChanges:
    """Before each change in the run folder: copies it, which is what a `kill -9` would leave, or kills this process."""

    def __init__(self, folder: Path, photographs: Path | None, killed_at: int | None) -> None:
        self.logs = folder / "logs"
        self.photographs = photographs
        self.killed_at = killed_at
        self.count = 0
        self.busy = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.busy or event not in WRITES or (event == "open" and arguments[1] in ("r", "rb", None)):
            return
        path = arguments[WRITES[event]]
        if isinstance(path, int) or not os.path.abspath(os.fsdecode(path)).startswith(str(self.logs)):
            return
        self.busy = True
        if any(self.logs.glob("*/*/checkpoints/[0-9]*")):
            self.count += 1
            if self.photographs is not None:
                shutil.copytree(self.logs, self.photographs / str(self.count) / "logs")
            if self.count == self.killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
        self.busy = False


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))
