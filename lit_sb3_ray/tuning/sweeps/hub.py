"""How runs in other processes are followed and stopped: they tell an actor how far they are, and hear from it.

A run trains in its process's main thread, where signals arrive, and cannot take calls meanwhile. So it asks, from a second
thread, twice a second; a stop reaches it as a signal that its own process sends itself, as if a user had.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback

logger = logging.getLogger(__name__)

PERIOD_S = 0.5
_ANSWER_S = 10.0
_CAUGHT = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Report:
    """How far a run is.

    Attributes:
        pid: Its process.
        num_timesteps: Env steps done; None before training.
        total: Env steps to do.
        last: Mean return of the last evaluation, if there was one.
    """

    pid: int
    num_timesteps: int | None = None
    total: int | None = None
    last: float | None = None


class Hub:
    """Keeps the last report of each run, and whether they all are to stop."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}
        self._stopping = False

    def tell(self, run: str, report: Report) -> bool:
        """Takes a run's report; says whether it is to stop."""
        self._reports[run] = report
        return self._stopping

    def forget(self, run: str) -> None:
        """Forgets the report of a run whose process is no more."""
        self._reports.pop(run, None)

    def stop(self) -> None:
        """Stops all runs, at their next report."""
        self._stopping = True

    def reports(self) -> dict[str, Report]:
        """The last report of each run that has made one."""
        return self._reports


def start_hub() -> Any:
    """Starts a hub on this node, which costs no CPU and comes back if it dies; returns its handle."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": here}
    return ray.remote(Hub).options(**options).remote()


class RunStopped(BaseException):
    """A stop has come while nothing was trained; no `Exception`, so that nothing takes it for an error of the run's own."""


class Reporter:
    """The run's side: reports while it is entered, and turns a stop into SIGTERM for this process.

    While the run trains, its own handler takes the signal, saves and ends the training. At any other time, when there is
    nothing to save, `RunStopped` is raised. To be entered in the main thread.
    """

    def __init__(self, hub: Any, run: str, pid: int) -> None:
        """Prepares.

        Args:
            hub: The hub's handle.
            run: The run's name there.
            pid: This process.
        """
        self._hub = hub
        self._run = run
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="reporter", daemon=True)
        self._before: dict[signal.Signals, Any] = {}
        self._model: BaseAlgorithm | None = None
        self._total: int | None = None
        self._callbacks: list[BaseCallback] = []

    def follow(self, model: BaseAlgorithm, total: int, callbacks: Iterable[BaseCallback]) -> None:
        """Says what is trained from now on.

        Args:
            model: The model.
            total: Env steps it is trained for.
            callbacks: SB3's callbacks, the evaluation among them.
        """
        self._callbacks = list(callbacks)
        self._model, self._total = model, total

    def __enter__(self) -> Reporter:
        """Takes the signals and starts reporting."""
        self._before = {number: signal.signal(number, _on_signal) for number in _CAUGHT}
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends reporting and gives the signals back; none is sent from here on."""
        for number in _CAUGHT:
            signal.signal(number, signal.SIG_IGN)
        self._over.set()
        self._thread.join()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _follow(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        while not self._over.is_set():
            try:
                stopping = ray.get(self._hub.tell.remote(self._run, self._report()), timeout=_ANSWER_S)
            except RayError as error:
                # The hub comes back; where its whole node is lost, the driver is too, and Ray ends this process.
                logger.debug("no answer: %s", error)
                stopping = False
            if stopping and not self._over.is_set():
                signal.pthread_kill(main, signal.SIGTERM)
                return
            self._over.wait(PERIOD_S)

    def _report(self) -> Report:
        if self._model is None:
            return Report(self._pid)
        rewards = [getattr(callback, "last_mean_reward", -math.inf) for callback in self._callbacks]
        last = next((float(reward) for reward in rewards if math.isfinite(reward)), None)
        return Report(self._pid, int(self._model.num_timesteps), self._total, last)


def _on_signal(signum: int, frame: FrameType | None) -> None:
    raise RunStopped
