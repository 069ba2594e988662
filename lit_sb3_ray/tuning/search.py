"""StudySearch: the side of Ray Tune that asks, on top of an Optuna study.

Ray's own `OptunaSearch` calls a stopped trial complete, leaves a trial without a number running for ever, keeps a pickle of
its own beside Optuna's storage, and never hears why a trial failed. Here the study in its storage is the only state.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState
from ray.tune.search import Searcher

from lit_sb3_ray.tuning.objectives import objective_value
from lit_sb3_ray.tuning.rows import (
    CHECKPOINT,
    CONTINUES,
    DRIVER,
    FAILURE,
    FOLDER,
    JUMPED,
    PARAMS_AT_END,
    SEED_VALUES,
    SPREAD,
    SURPLUS,
    TIMESTEPS,
    TRACEBACK,
    fail,
    one_line,
    trained,
)
from lit_sb3_ray.tuning.tally import Tally
from lit_sb3_ray.tuning.trainable import CHECKPOINT as ORIGIN
from lit_sb3_ray.tuning.trainable import DRAWN, FINISHED, MARK, METRIC, NUMBER
from lit_sb3_ray.tuning.trainable import HYPERPARAMS as CONFIGURED

if TYPE_CHECKING:
    from optuna import Study, Trial

    from lit_sb3_ray.tuning.drivers import Lease

logger = logging.getLogger(__name__)


@dataclass
class LiveTrial:
    """A trial that this driver works on.

    Attributes:
        trial: Its row in the study.
        values: What it has reported, by env steps.
        jumped: Evaluations that a long rollout stepped over, by env steps.
        last: Its last result.
    """

    trial: Trial
    values: dict[int, float] = field(default_factory=dict)
    jumped: set[int] = field(default_factory=set)
    last: dict[str, Any] = field(default_factory=dict)

    def configured(self, part: str) -> dict[str, Any]:
        """What a part of its config was at its last result, which Tune gives with one name for all that is nested."""
        prefix = f"config/{part}/"
        return {name.removeprefix(prefix): value for name, value in self.last.items() if name.startswith(prefix)}

    def changed(self) -> dict[str, Any]:
        """What a member of a population had drawn, once it has taken over others' values; else nothing."""
        params = self.configured(DRAWN)
        return params if params != trained(self.trial) else {}


class StudySearch(Searcher):
    """Draws trials from an Optuna study and writes what becomes of them into it.

    Attributes:
        live: The trials at work, by Tune's id.
        closing: No trial is begun any more.
        fatal: What was wrong with the settings when the first trial of all failed by them; None otherwise.
    """

    def __init__(
        self,
        study: Study,
        total: int,
        draw: Callable[[Trial], dict[str, Any]],
        objective: str = "last",
        lease: Lease | None = None,
    ) -> None:
        """Prepares a search.

        Args:
            study: The study.
            total: Trials of the whole study, those of other drivers and of earlier times included.
            draw: Draws a row's parameters and returns the hyperparameters that they mean.
            objective: What a trial's value is; see `objective_value`.
            lease: This driver's, which marks its rows; None for a study that nobody else works on.
        """
        super().__init__(metric=METRIC, mode="max")
        self.study = study
        self.total = total
        self.live: dict[str, LiveTrial] = {}
        self.closing = False
        self.fatal: str | None = None
        self._draw = draw
        self._objective = objective
        self._lease = lease
        self._tally = Tally(study)
        self._has_worked = any(row.intermediate_values for row in study.get_trials(deepcopy=False))

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles what it is given for a way of going on with a study that is not used here."""
        return {}

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]
        """Begins a trial.

        Args:
            trial_id: Tune's id of it.

        Returns:
            Its config; `FINISHED` when the study has all its trials.
        """
        self._check_lease()
        while not self.closing and self._tally.wants_more(self.total):
            trial = self.study.ask()
            # Another driver may have taken the study's last trial in the same moment: the rows' numbers decide.
            if self._tally.before(trial.number) >= self.total:
                trial.set_user_attr(SURPLUS, True)
                self.study.tell(trial, state=TrialState.FAIL)
                break
            trial.set_user_attr(DRIVER, "" if self._lease is None else self._lease.driver.id)
            try:
                hyperparams = self._draw(trial)
            except Exception as error:  # A search space of the user's may raise anything; it is that trial's end.
                self._fail(trial, one_line(error), "".join(traceback.format_exception(error)))
                continue
            live = self.live[trial_id] = LiveTrial(trial)
            return {NUMBER: trial.number, DRAWN: trained(trial), CONFIGURED: hyperparams, **self._take_over(live)}
        return str(Searcher.FINISHED)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Reports an evaluation that the trial goes on after."""
        self._check_lease()
        if trial_id in self.live:
            self._report(self.live[trial_id], result)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Ends a trial's row: complete when its budget is used up, failed by its own error, else pruned.

        A trial whose actor is lost for good stays until `lose` says why.
        """
        self._check_lease()
        if error or trial_id not in self.live:
            return
        live = self.live[trial_id]
        if result is None or METRIC not in result:
            return  # Nothing has come of it yet: `close` breaks it off.
        del self.live[trial_id]
        if FAILURE in result:
            self._fail(live.trial, result[FAILURE], result[TRACEBACK])
            return
        self._report(live, result)
        self._note(live)
        if result.get(FINISHED):
            self.study.tell(live.trial, objective_value(self._objective, live.values))
        else:
            self.study.tell(live.trial, state=TrialState.PRUNED)

    def lose(self, trial_id: str, reason: str, trace: str) -> None:
        """Ends the row of a trial whose actor was lost too often.

        Args:
            trial_id: Tune's id.
            reason: Why, as one line.
            trace: What Ray says about it.
        """
        self._check_lease()
        live = self.live.pop(trial_id, None)
        if live is not None:
            self._fail(live.trial, reason, trace)

    def locate(self, trial_id: str, folder: str) -> None:
        """Notes where Tune keeps a trial."""
        self._check_lease()
        if trial_id in self.live:
            self.live[trial_id].trial.set_user_attr(FOLDER, folder)

    def checkpointed(self, trial_id: str, path: str) -> None:
        """Notes a trial's newest whole checkpoint."""
        self._check_lease()
        live = self.live.get(trial_id)
        if live is not None:
            taken_over = {DRAWN: live.changed(), CONFIGURED: live.configured(CONFIGURED)} if live.changed() else {}
            live.trial.set_user_attr(CHECKPOINT, {"path": path, "mark": int(live.last[MARK]), **taken_over})

    def close(self) -> None:
        """Breaks off what is still at work, so that it can be gone on with later."""
        self.closing = True
        self._check_lease()
        for live in self.live.values():
            self.study.tell(live.trial, state=TrialState.FAIL)
        self.live.clear()

    def save(self, checkpoint_path: str) -> None:
        """Keeps nothing: all there is to keep is in the study's storage."""
        Path(checkpoint_path).write_text("the state of this search is the study in Optuna's storage\n")

    def restore(self, checkpoint_path: str) -> None:
        """Takes nothing; see `save`."""

    def _check_lease(self) -> None:
        """Leaves the rows alone, and ends, when another driver has taken them over."""
        successor = None if self._lease is None else self._lease.successor()
        if successor is not None and not (self.closing and not self.live):
            logger.error("This driver was silent for too long, and %s has taken the study over: it ends", successor.told())
            self.closing = True
            self.live.clear()

    def _take_over(self, live: LiveTrial) -> dict[str, Any]:
        """Takes what an earlier, broken-off row of the same trial had reached at its last checkpoint.

        Returns:
            Where that is, None for nowhere; and what a member of a population had there, where that is not what was drawn.
        """
        attributes = live.trial.user_attrs
        if CONTINUES not in attributes:
            return {ORIGIN: None}
        if CHECKPOINT not in attributes:
            logger.info("Trial %d is trial %d begun anew: it had no checkpoint", live.trial.number, attributes[CONTINUES])
            return {ORIGIN: None}
        checkpoint = attributes[CHECKPOINT]
        path = str(checkpoint["path"])
        if os.path.isabs(path) and not os.path.isdir(path):
            logger.warning("Trial %d begins anew: its checkpoint %s is no more", live.trial.number, path)
            return {ORIGIN: None}
        earlier = self.study.get_trials(deepcopy=False)[attributes[CONTINUES]]
        for step, value in sorted(earlier.intermediate_values.items()):
            if step <= checkpoint["mark"]:
                live.values[step] = value
                live.trial.report(value, step)
        return {ORIGIN: path, **{key: checkpoint[key] for key in (DRAWN, CONFIGURED) if key in checkpoint}}

    def _report(self, live: LiveTrial, result: dict[str, Any]) -> None:
        mark, value = int(result[MARK]), float(result[METRIC])
        self._has_worked = True
        live.last = result
        live.jumped.update(result[JUMPED])
        # After a lost actor a trial goes back to its checkpoint and comes by again.
        if mark not in live.values:
            live.values[mark] = value
            live.trial.report(value, mark)

    def _note(self, live: LiveTrial) -> None:
        """Writes, once at the end, what else is known of a trial."""
        last, note = live.last, live.trial.set_user_attr
        note(TIMESTEPS, int(last["timesteps_total"]))
        if live.changed():
            note(PARAMS_AT_END, live.changed())
        if len(last[SEED_VALUES]) > 1:
            note(SPREAD, last[SPREAD])
            note(SEED_VALUES, last[SEED_VALUES])
        if live.jumped:
            note(JUMPED, sorted(live.jumped))

    def _fail(self, trial: Trial, reason: str, trace: str) -> None:
        fail(self.study, trial, reason, trace)
        if not self._has_worked and reason.startswith("ConfigError"):
            # Before anything has worked it is the settings that are wrong, not what was drawn.
            self.fatal, self.closing = reason.partition(": ")[2], True
            return
        logger.warning("Trial %d has failed: %s; its parameters: %s", trial.number, reason, trained(trial))
