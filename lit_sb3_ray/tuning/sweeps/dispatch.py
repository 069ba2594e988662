"""Many runs at once: each in an actor of its own, started again where its process is lost, stopped together."""

from __future__ import annotations

import logging
import textwrap
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pickle import PicklingError
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.scale.process import Process
from lit_sb3_ray.tuning.sweeps.combination import Combination
from lit_sb3_ray.tuning.sweeps.hub import Report, start_hub
from lit_sb3_ray.tuning.sweeps.needs import Need, room
from lit_sb3_ray.tuning.sweeps.remote_run import Ended, RunActor

logger = logging.getLogger(__name__)

_TICK_S = 0.2
_LOOK_S = 1.0
_NOTICE_S = 30.0
# A run saves within five seconds of a stop; writing a large replay buffer may take longer.
_STOP_S = 30.0


@dataclass(frozen=True)
class Job:
    """A run that is to be carried out.

    Attributes:
        combination: Which.
        settings: Arguments of `ExperimentManager` by name.
        need: What it is given.
    """

    combination: Combination
    settings: dict[str, Any]
    need: Need


@dataclass(frozen=True)
class Outcome:
    """How a run has ended.

    Attributes:
        ended: What its process said last; neither result nor failure where the run was stopped.
        restarts: How often its process was lost, and the run started again.
    """

    ended: Ended = field(default_factory=Ended)
    restarts: int = 0


@dataclass(frozen=True)
class Progress:
    """Where all runs stand.

    Attributes:
        waiting: Runs that have not begun.
        running: Runs under way; one whose process is only starting has no report.
        done: Runs finished.
        failed: Runs failed.
    """

    waiting: int
    running: tuple[tuple[Combination, Report | None], ...]
    done: int
    failed: int


class Observer:
    """Hears of what happens; this one keeps it to itself."""

    def tell(self, line: str) -> None:
        """Hears of an event, in one line."""

    def show(self, progress: Progress) -> None:
        """Hears where all runs stand, about once a second."""


@dataclass
class _Attempt:
    """A run in its process."""

    job: Job
    restarts: int
    group: PlacementGroup
    actor: Any
    call: Any
    begun: float
    noticed: bool = False

    def end(self) -> None:
        """Ends the process, and those of its env actors."""
        ray.kill(self.actor)
        remove_placement_group(self.group)


class Dispatcher:
    """Carries runs out, several at once.

    Attributes:
        outcomes: How runs have ended; without those that a signal has kept from beginning.
        stop_signal: The signal that has ended it all, if one did.
    """

    def __init__(
        self, folder: Path, jobs: Sequence[Job], *, n_jobs: int | None, max_failures: int, observer: Observer | None = None
    ) -> None:
        """Prepares.

        Args:
            folder: The folder of all runs.
            jobs: The runs.
            n_jobs: How many at once, at most; None for as many as fit.
            max_failures: How often a run whose process is lost is started again.
            observer: Hears of what happens.

        Raises:
            ConfigError: A setting cannot be sent to another process.
        """
        self.outcomes: dict[Combination, Outcome] = {}
        self.stop_signal: int | None = None
        self._folder = folder.absolute()
        self._waiting = deque((job, 0) for job in jobs)
        self._running: list[_Attempt] = []
        self._reports: dict[str, Report] = {}
        self._n_jobs = n_jobs
        self._room, self._counted = 1, 0.0
        self._max_failures = max_failures
        self._observer = observer or Observer()
        self._settings = {job.combination: _pickled(job.settings) for job in jobs}

    def run(self) -> None:
        """Carries all out; to be called with Ray connected."""
        if not self._waiting:
            return
        with SignalStop(StopGuard()) as signals:
            self._hub = start_hub()
            try:
                self._carry_on(signals)
            finally:
                for attempt in self._running:
                    attempt.end()
                ray.kill(self._hub)
        self.stop_signal = signals.signum

    def _carry_on(self, signals: SignalStop) -> None:
        looked, deadline = 0.0, float("inf")
        while self._running or (self._waiting and signals.signum is None):
            now = time.monotonic()
            if signals.signum is None:
                self._start_some(now)
            else:
                if deadline == float("inf"):
                    self._observer.tell("Stopping: running experiments save and end")
                deadline = min(deadline, now + _STOP_S)
                self._stop(now > deadline)
            if now > looked + _LOOK_S:
                looked = now
                self._look(now)
            self._collect()

    def _start_some(self, now: float) -> None:
        if not self._waiting:
            return
        if now > self._counted + _LOOK_S:
            self._counted = now
            self._room = room([job.need for job, _ in self._waiting] + [attempt.job.need for attempt in self._running])
        free = min(self._room, self._n_jobs or self._room) - len(self._running)
        for _ in range(min(free, len(self._waiting))):
            self._start(*self._waiting.popleft(), now)

    def _start(self, job: Job, restarts: int, now: float) -> None:
        need, combination = job.need, job.combination
        group = placement_group([need.bundle], strategy="STRICT_PACK")
        here = PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=True)
        options: dict[str, Any] = {"num_cpus": need.learner_cpus, "num_gpus": need.gpus, "scheduling_strategy": here}
        process, output = Process.of_this(need.learner_cpus, need.gpus), combination.output(self._folder)
        actor: Any = ray.remote(RunActor).options(**options).remote(str(output))
        call = actor.carry_out.remote(process, combination, str(self._folder), self._settings[combination], self._hub)
        self._running.append(_Attempt(job, restarts, group, actor, call, now))

    def _stop(self, overdue: bool) -> None:
        """Asks running experiments to stop; those that have not begun, and those that do not stop, are ended."""
        self._hub.stop.remote()
        for attempt in list(self._running):
            name = attempt.job.combination.name
            if not overdue and name in self._reports:
                continue
            if overdue:
                self._observer.tell(f"{attempt.job.combination}: has not stopped in time, and is ended as it is")
            self._let_go(attempt, Ended())

    def _collect(self) -> None:
        if not self._running:
            return
        calls = {attempt.call: attempt for attempt in self._running}
        ended, _ = ray.wait(list(calls), num_returns=1, timeout=_TICK_S)
        for call in ended:
            attempt = calls[call]
            try:
                self._let_go(attempt, ray.get(call))
            except RayError as error:
                self._lose(attempt, textwrap.shorten(str(error), 300))

    def _lose(self, attempt: _Attempt, reason: str) -> None:
        """Starts a run again whose process is lost, unless that has happened too often."""
        told = f"{attempt.job.combination}: its process is lost"
        logger.info("%s: %s", told, reason)
        if attempt.restarts >= self._max_failures:
            self._let_go(attempt, Ended(failure=f"its process was lost {attempt.restarts + 1} times; the last time: {reason}"))
            return
        self._running.remove(attempt)
        attempt.end()
        # It waits now, as one that has not begun.
        self._hub.forget.remote(attempt.job.combination.name)
        self._reports.pop(attempt.job.combination.name, None)
        self._waiting.appendleft((attempt.job, attempt.restarts + 1))
        self._observer.tell(f"{told}; started again from its last checkpoint ({attempt.restarts + 1} of {self._max_failures})")

    def _let_go(self, attempt: _Attempt, ended: Ended) -> None:
        """Notes how a run has ended."""
        self._running.remove(attempt)
        attempt.end()
        combination = attempt.job.combination
        self.outcomes[combination] = Outcome(ended, attempt.restarts)
        if ended.result is not None:
            self._observer.tell(f"{combination}: {ended.result.mean_reward:.2f} +/- {ended.result.std_reward:.2f}")
        elif ended.failure is not None:
            output = combination.output(self._folder)
            self._observer.tell(f"{combination}: failed: {ended.failure} (its output: {output})")

    def _look(self, now: float) -> None:
        """Asks where runs stand, and shows it."""
        try:
            self._reports |= ray.get(self._hub.reports.remote(), timeout=_LOOK_S)
        except RayError as error:
            logger.debug("the runs are too busy to say where they stand: %s", error)
        for attempt in self._running:
            if not attempt.noticed and attempt.job.combination.name not in self._reports and now > attempt.begun + _NOTICE_S:
                attempt.noticed = True
                self._observer.tell(f"{attempt.job.combination}: waits for {attempt.job.need}")
        endings = [outcome.ended for outcome in self.outcomes.values()]
        self._observer.show(
            Progress(
                waiting=len(self._waiting),
                running=tuple((a.job.combination, self._reports.get(a.job.combination.name)) for a in self._running),
                done=sum(ended.result is not None for ended in endings),
                failed=sum(ended.failure is not None for ended in endings),
            )
        )


def _pickled(settings: dict[str, Any]) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(settings)
    except (PicklingError, TypeError, AttributeError) as error:
        raise ConfigError(f"the settings of a run cannot be sent to another process: {error}") from error
    return pickled
