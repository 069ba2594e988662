"""What a study's driver does beside Ray Tune: keeps its lease, hears of checkpoints and losses, ends the study when asked."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray import cloudpickle, tune
from ray.exceptions import RayActorError

from lit_sb3_ray.scale.metrics import TRIALS, tell
from lit_sb3_ray.scale.remote_folder import is_url, url_of
from lit_sb3_ray.tuning.ending import ActorsEnd
from lit_sb3_ray.tuning.rows import one_line
from lit_sb3_ray.tuning.trainable import NUMBER

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

    from lit_sb3_ray.experiment.signals import SignalStop
    from lit_sb3_ray.tuning.crowd import Crowd
    from lit_sb3_ray.tuning.drivers import Lease
    from lit_sb3_ray.tuning.live import LiveTable
    from lit_sb3_ray.tuning.schedule.judge import Judge
    from lit_sb3_ray.tuning.schedule.population import PopulationTraining
    from lit_sb3_ray.tuning.search import StudySearch

logger = logging.getLogger(__name__)

# Seconds between two looks at whether somebody wants the study to end.
LOOK_EVERY_S = 1.0


class Watch(tune.Callback):
    """Connects Tune's events with the study's rows.

    Args:
        search: The study's search.
        lease: This driver's lease.
        table: Shows the trials.
        scheduler: The study's scheduler, which knows Tune's controller.
        keeps_checkpoints: Whether the checkpoint of a trial stays when it is over.
        home: Where Tune keeps the trials; a URL, or a path or empty for a folder.
        crowd: How many trials may be at work; None where that never changes.
    """

    def __init__(
        self,
        search: StudySearch,
        lease: Lease,
        table: LiveTable,
        scheduler: Judge | PopulationTraining,
        keeps_checkpoints: bool = False,
        home: str = "",
        crowd: Crowd | None = None,
    ) -> None:
        self._search = search
        self._crowd = crowd
        self._scheduler = scheduler
        self._end: ActorsEnd | None = None
        self._lease = lease
        self._table = table
        self._keeps_checkpoints = keeps_checkpoints
        self._home = home
        self._looked = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles what it is given for a way of going on with a study that is not used here."""
        return {}

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Renews the lease, looks for a wish to stop, ends what has been asked to stop."""
        controller = self._scheduler.controller
        if self._search.closing and controller is not None and self._end is None:
            self._end = ActorsEnd(controller)
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY_S:
            self._looked = now
            self._lease.renew()
            for state, number in self._table.states().items():
                tell(TRIALS, number, study=self._search.study.study_name, state=state)
            if self._lease.stop_is_requested():
                self._search.closing = True
            if self._crowd is not None and controller is not None and not self._search.closing:
                self._crowd.follow(controller)

    def close(self) -> None:
        """Leaves the actors that were to be ended to themselves; Tune has seen to them."""
        if self._end is not None:
            self._end.close()

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Notes where a trial's files are."""
        self._search.locate(trial.trial_id, address(str(trial.path), trial, self._home))
        self._table.changed(trial, "RUNNING")

    def on_trial_result(self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any) -> None:
        """Shows an evaluation."""
        self._table.reported(trial, result)

    def on_checkpoint(self, iteration: int, trials: list[Trial], trial: Trial, checkpoint: Any, **info: Any) -> None:
        """Notes a whole checkpoint."""
        self._search.checkpointed(trial.trial_id, address(checkpoint.path, trial, self._home))

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Lets the checkpoint of a trial go that is over; its replay buffer may be large."""
        checkpoint: Any = trial.checkpoint
        if checkpoint is None or self._keeps_checkpoints:
            return
        try:
            checkpoint.filesystem.delete_dir(checkpoint.path)
        except OSError as error:  # A shared folder may hold on to a file for a while; that is no reason to end a study.
            logger.warning("Trial %d is over, and its checkpoint stays: %s", trial.config[NUMBER], one_line(error))

    def on_trial_recover(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Tells that a trial's actor was lost and the trial goes on."""
        logger.warning("Trial %d: %s; it goes on from its last checkpoint", trial.config[NUMBER], _reason(trial)[0])

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Ends the row of a trial whose actor was lost for good."""
        reason, trace = _reason(trial)
        self._search.lose(trial.trial_id, reason, trace)
        self._table.changed(trial, "FAIL")


def address(path: str, trial: Trial, home: str) -> str:
    """Says where something of a trial is, such that another driver finds it.

    Args:
        path: Its path in the file system that Tune keeps trials in.
        trial: The trial.
        home: Where Tune keeps trials, as the user has put it.

    Returns:
        The path, or its URL where `home` is one.
    """
    return url_of(path, trial.storage.storage_fs_path, home) if is_url(home) and trial.storage is not None else path


def _reason(trial: Trial) -> tuple[str, str]:
    """Why a trial's actor was lost, as one line and in full."""
    error = _last_error(trial)
    text = str(error or "its process was lost").strip()
    lines = text.splitlines()
    # A lost process is told with advice after it, an error in a process after its traceback.
    told = lines[0] if isinstance(error, RayActorError | None) and "creation task" not in lines[0] else lines[-1]
    kind = RayActorError if error is None else type(error)
    return f"{kind.__name__}: {told.strip()}", text


def _last_error(trial: Trial) -> Exception | None:
    """What the trial has met last. Tune's `get_pickled_error` looks into the storage, where it is copied to later."""
    path = trial.pickled_error_file
    if path is None or not Path(path).exists():
        return None
    error: Exception = cloudpickle.loads(Path(path).read_bytes())
    return error


class StudyEnd(tune.Stopper):
    """Ends the study when its search is closing or its time is over.

    Args:
        search: The study's search.
        stop: Takes signals.
        time_budget: Seconds; None for no limit.
    """

    def __init__(self, search: StudySearch, stop: SignalStop, time_budget: float | None) -> None:
        self._search = search
        self._stop = stop
        self._end = None if time_budget is None else time.monotonic() + time_budget

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles what it is given for a way of going on with a study that is not used here."""
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Ends no single trial."""
        return False

    def stop_all(self) -> bool:
        """Whether everything is to end now."""
        if self._stop.signum is not None:
            self._search.closing = True
        if self._end is not None and time.monotonic() > self._end:
            self._search.closing = True
        return self._search.closing
