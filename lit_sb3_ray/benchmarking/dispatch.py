"""Many runs played at once: a Ray task each, in a process of its own."""

from __future__ import annotations

import logging
import sys
import textwrap
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from lit_sb3_ray.benchmarking.runs import Run
from lit_sb3_ray.benchmarking.scoring import Rules, Score, score_run
from lit_sb3_ray.config.problems import reason
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.output import OutputFile
from lit_sb3_ray.scale.process import Process
from lit_sb3_ray.scale.ray_settings import RaySettings
from lit_sb3_ray.scale.resources import Request, cpu_supply, grant, this_node
from lit_sb3_ray.scale.shared_storage import check_shared

logger = logging.getLogger(__name__)

_TICK_S = 0.2


@dataclass(frozen=True)
class Outcome:
    """How playing a run has ended.

    Attributes:
        score: What it has come to; None when it could not be played.
        problem: Why it could not, in one line.
    """

    score: Score | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Setting:
    """What the runs are played with, none of which changes a score.

    Attributes:
        log_dir: The folder that they are in.
        output: The folder for what their processes print.
        num_threads: CPU threads, and so CPUs, of each.
        n_jobs: How many at once, at most; None for as many as there are CPUs for.
        gym_packages: Modules to import first.
        trust: Read downloaded models as if they were one's own.
        ray_settings: Which Ray they are played on.
    """

    log_dir: Path
    output: Path
    num_threads: int = 1
    n_jobs: int | None = None
    gym_packages: tuple[str, ...] = ()
    trust: bool = False
    ray_settings: RaySettings = field(default_factory=RaySettings)


class Dispatcher:
    """Plays runs, and yields each as it ends.

    Attributes:
        stop_signal: The signal that has ended it all, if one did.
    """

    def __init__(self, setting: Setting, rules: Rules) -> None:
        """Prepares.

        Args:
            setting: What the runs are played with.
            rules: How they are played.
        """
        self.stop_signal: int | None = None
        self._setting = setting
        self._rules = rules

    def play(self, runs: Sequence[Run]) -> Generator[tuple[Run, Outcome], None, None]:
        """Plays the runs; a signal ends those under way, which are then not among what is yielded.

        Args:
            runs: The runs.

        Yields:
            Runs in the order in which they end.

        Raises:
            ConfigError: No node has as many CPUs as a run is given, or the cluster that is named does not answer.
        """
        if not runs:
            return
        connect(self._setting.ray_settings)
        grant([Request("benchmark task", 1, self._setting.num_threads)], cpu_supply(), "give --num-threads a smaller number")
        task, waiting, running = self._task(), deque(runs), dict[Any, Run]()
        with SignalStop(StopGuard()) as signals:
            try:
                while (running or waiting) and signals.signum is None:
                    while waiting and len(running) < (self._setting.n_jobs or len(runs)):
                        run = waiting.popleft()
                        running[self._start(run, task)] = run
                    ended, _ = ray.wait(list(running), timeout=_TICK_S)
                    for call in ended:
                        yield running.pop(call), _outcome(call)
            finally:
                self.stop_signal = signals.signum
                for call in running:
                    ray.cancel(call, force=True)

    def _task(self) -> Any:
        options: dict[str, Any] = {"num_cpus": self._setting.num_threads}
        try:
            check_shared(str(self._setting.log_dir), "--log-dir")
        except (ConfigError, OSError) as error:
            logger.warning("Runs are played on this node alone: %s", error)
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(this_node(), soft=False)
        # A process a run: what an env leaves behind in one is no other's concern.
        once: Any = ray.remote(max_calls=1, max_retries=1)
        return once(_play).options(**options)

    def _start(self, run: Run, task: Any) -> Any:
        setting = self._setting
        output = setting.output / run.path.parent.name / f"{run.path.name}.log"
        process = Process.of_this(setting.num_threads, 0)
        return task.remote(process, str(output.absolute()), run, self._rules, setting.gym_packages, setting.trust)


def _play(process: Process, output: str, run: Run, rules: Rules, gym_packages: tuple[str, ...], trust: bool) -> Outcome:
    """Plays one run in this process, which is there for nothing else; what it prints goes to a file."""
    Path(output).unlink(missing_ok=True)
    OutputFile().open(Path(output))
    process.adopt()
    logging.basicConfig(format="%(message)s", stream=sys.stderr, force=True)
    try:
        return Outcome(score_run(run, rules, num_threads=process.threads, gym_packages=gym_packages, trust=trust))
    except ConfigError as error:
        return Outcome(problem=" ".join(str(error).split()))
    except (Exception, SystemExit) as error:  # An env, or what a model is unpickled with, may raise anything.
        traceback.print_exc()
        return Outcome(problem=f"{reason(error)} (see {output})")
    finally:
        sys.stderr.flush()


def _outcome(call: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(call)
    except RayError as error:
        return Outcome(problem=textwrap.shorten(f"its process was lost: {error}", 300))
    return outcome
