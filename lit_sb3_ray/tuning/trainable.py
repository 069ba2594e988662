"""The trial as Ray Tune sees it: an actor that trains from evaluation to evaluation and stays warm for the next trial."""

from __future__ import annotations

import contextlib
import logging
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import ray
from ray import tune
from ray.train._internal.session import _TrainingResult
from ray.tune.result import DONE, SHOULD_CHECKPOINT, TIMESTEPS_TOTAL

from lit_sb3_ray.scale.metrics import Run
from lit_sb3_ray.scale.output import OutputFile
from lit_sb3_ray.tuning.rows import FAILURE, JUMPED, SEED_VALUES, SPREAD, TRACEBACK, one_line

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.scale.process import Process
    from lit_sb3_ray.tuning.trial import Point, TrialRun

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

METRIC, MARK, FINISHED = "mean_reward", "mark", "finished"
# The part of a trial's config that Tune's loggers show is what it has drawn; the rest lies under these keys.
NUMBER, DRAWN, HYPERPARAMS, CHECKPOINT = "trial", "params", "hyperparams", "checkpoint"


@dataclass(frozen=True)
class TrialPlan:
    """What all trials of a study have in common.

    Attributes:
        make_manager: Makes the experiment of one trial out of its hyperparameters and a seed.
        marks: Env steps at which evaluations are due.
        seeds: Seeds that each trial trains with; its value is the mean over them.
        checkpoint_every: Seconds between two checkpoints, at least.
        folder: Where each trial keeps its evaluations and best model, under `trial_<number>`; None for nowhere.
        output: Where what each trial prints and logs goes, under `trial_<number>`; None for Tune's folder on its node.
        process: What a trial's process takes over from the driver's; None for nothing.
        is_population: Whether trials take over each other's states.
        study: The study's name, for the numbers that are told to Ray.
    """

    make_manager: Callable[[Mapping[str, Any], int], ExperimentManager]
    marks: tuple[int, ...]
    seeds: tuple[int, ...]
    checkpoint_every: float
    folder: str | None = None
    output: str | None = None
    process: Process | None = None
    is_population: bool = False
    study: str = ""


class ExperimentTrial(tune.Trainable):
    """A trial: one experiment for each seed, all trained to the next evaluation by a `step`.

    What goes wrong in the experiment itself is a result with `failure` and `traceback`: trying it again would give the same.
    Only a lost actor is an error for Tune, which then goes on from the last checkpoint.
    """

    def setup(self, config: dict[str, Any], plan: TrialPlan | None = None) -> None:
        """Takes the config; what it asks for is built by the first step.

        Args:
            config: The trial's number, what it has drawn, its hyperparameters, and a checkpoint to go on from or None.
            plan: The study's plan; each call brings it.
        """
        assert plan is not None, "the study hands its plan to every trial"
        if plan.process is not None:
            plan.process.adopt()
        Run.name = plan.study
        # The trial's output tells which node each env actor is on.
        logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%F %T")
        logging.getLogger("lit_sb3_ray.vec").setLevel(logging.INFO)
        self._plan = plan
        self._runs: list[TrialRun] = []
        self._generators: list[dict[str, Any]] = []
        self._output = OutputFile()
        self._begin(config)

    def step(self) -> dict[str, Any]:
        """Trains to the next evaluation.

        Returns:
            `mean_reward`, `mark`, `timesteps_total` and so on; or `failure` and `traceback`.
        """
        try:
            if not self._runs:
                self._begin_anew()
            before = sum(run.module.num_timesteps for run in self._runs)
            begun = time.monotonic()
            points = self._each(lambda run, _: run.advance())
            speed = (sum(point.num_timesteps for point in points) - before) / max(time.monotonic() - begun, 1e-9)
            return self._result(points, speed)
        except Exception as error:  # Whatever an env, a wrapper or a diverged model raises is this trial's end.
            self._close()
            logger.warning("Trial %s has failed", self._number, exc_info=True)
            trace = "".join(traceback.format_exception(error))
            # No time: a scheduler would otherwise take the result for one of a training that has come so far.
            return {METRIC: float("nan"), FAILURE: one_line(error), TRACEBACK: trace, DONE: True}

    def save(self, checkpoint_dir: str | None = None) -> Any:
        """Has a checkpoint written; a trial that cannot write one, as on a full disk, goes on without.

        Args:
            checkpoint_dir: Where; None for a folder that is copied to the study's storage and removed.

        Returns:
            What Tune wants to know of it; its `checkpoint` is None when there is none.
        """
        self._saved_at = time.monotonic()
        if checkpoint_dir is not None or self._storage is None:
            return super().save(checkpoint_dir)
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                return super().save(folder)
        except (OSError, RuntimeError) as error:  # torch tells a failed write as a RuntimeError.
            logger.warning("Trial %d goes on without a new checkpoint: %s", self._number, one_line(error))
            with contextlib.suppress(OSError):
                self._storage.storage_filesystem.delete_dir(self._storage.checkpoint_fs_path)
            return _TrainingResult(checkpoint=None, metrics=dict(self._last_result or {}))

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Writes the state of each seed's experiment."""
        self._each(lambda run, index: run.save(Path(checkpoint_dir) / str(index)))

    def load_checkpoint(self, checkpoint: str) -> None:  # type: ignore[override]
        """Goes back to a state, and on with the hyperparameters of this trial."""
        self._close()
        self._build(Path(checkpoint))

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Makes the actor ready for another trial."""
        self._close()
        self._begin(new_config)
        return True

    def cleanup(self) -> None:
        """Closes the envs and the output."""
        self._close()
        # What an actor says while Ray ends it stays in the last trial's file: nobody at the terminal can use it.
        if not ray.is_initialized() or ray.get_runtime_context().get_actor_id() is None:
            self._output.close()

    def _begin(self, config: Mapping[str, Any]) -> None:
        self._number: int = config[NUMBER]
        self._hyperparams: dict[str, Any] = config[HYPERPARAMS]
        self._origin: str | None = config.get(CHECKPOINT)
        self._saved_at = time.monotonic()
        self._mark_before = 0
        self._home = Path(self._plan.output or self.logdir) / f"trial_{self._number:05d}"
        self._output.open(self._home / "output.log")

    def _begin_anew(self) -> None:
        if self._origin is None:
            self._build(None)
        else:
            with tune.Checkpoint(self._origin).as_directory() as folder:
                self._build(Path(folder))

    def _build(self, checkpoint: Path | None) -> None:
        from lit_sb3_ray.experiment.signals import SignalStop
        from lit_sb3_ray.lit.state import rng_states
        from lit_sb3_ray.lit.stop import StopGuard
        from lit_sb3_ray.tuning.schedule.scalars import set_scalars
        from lit_sb3_ray.tuning.trial import TrialRun

        plan = self._plan
        for index, seed in enumerate(plan.seeds):
            part = f"seed_{seed}" if len(plan.seeds) > 1 else ""
            folder = None if plan.folder is None else Path(plan.folder) / f"trial_{self._number}" / part
            manager = plan.make_manager(self._hyperparams, seed)
            origin = None if checkpoint is None else checkpoint / str(index)
            self._runs.append(TrialRun(manager, plan.marks, SignalStop(StopGuard()), folder, origin, self._home / part))
            self._generators.append(rng_states())
        if checkpoint is not None and plan.is_population:
            # The checkpoint may be another member's, and brings that one's values back.
            for run in self._runs:
                set_scalars(run.module.algorithm, self._hyperparams)
        self._mark_before = max((run.last.mark for run in self._runs if run.last is not None), default=0)

    def _result(self, points: list[Point], speed: float) -> dict[str, Any]:
        values = [point.mean_reward for point in points]
        done = all(run.done for run in self._runs)
        # A callback may have ended the training with one seed before that with another.
        mark = max(point.mark for point in points)
        jumped = [each for each in self._plan.marks if self._mark_before < each < mark]
        self._mark_before = mark
        due = time.monotonic() - self._saved_at > self._plan.checkpoint_every
        return {
            METRIC: statistics.fmean(values),
            MARK: mark,
            TIMESTEPS_TOTAL: max(point.num_timesteps for point in points),
            "std_reward": statistics.fmean([point.std_reward for point in points]),
            "steps_per_second": speed,
            SPREAD: statistics.pstdev(values),
            SEED_VALUES: values,
            JUMPED: jumped,
            FINISHED: done,
            DONE: done,
            SHOULD_CHECKPOINT: due and not done,
        }

    def _each(self, act: Callable[[TrialRun, int], Result]) -> list[Result]:
        """Does something with each seed's experiment, which has the global random generators for itself."""
        from lit_sb3_ray.lit.state import rng_states, set_rng_states

        if len(self._runs) == 1:
            return [act(self._runs[0], 0)]
        results = []
        for index, run in enumerate(self._runs):
            set_rng_states(self._generators[index])
            results.append(act(run, index))
            self._generators[index] = rng_states()
        return results

    def _close(self) -> None:
        self._generators.clear()
        while self._runs:
            try:
                self._runs.pop().close()
            except Exception:  # An env that cannot be closed changes nothing of what its trial was worth.
                logger.warning("Trial %d cannot be closed", self._number, exc_info=True)
