"""Judge: one of Ray's schedulers, or several side by side, asked at a study's marks.

The decisions are Ray's. What is added is what its schedulers leave open. Rollouts end past a mark, and by different numbers of
steps, so trials are compared by the mark that they have reached. A trial that trains a stretch again after a lost actor is not
judged twice. A bracket is chosen by the trial's number, not by NumPy's global generator. And what a study's storage tells of
earlier trials is taken in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ray.tune.result import TIMESTEPS_TOTAL
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from lit_sb3_ray.tuning.schedule.budget import mark_reached

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Trial

TrialKey = int | str
"""A trial's number in its study, or any other name that it keeps when the study is resumed."""

Row = tuple[TrialKey, Sequence[tuple[int, float]]]
"""A trial and what it has reported: env steps and mean reward, ascending by env steps."""

# What the schedulers inside are told: the mark as their time, and the value, of which more is better.
TIME, VALUE, MODE = "mark", "value", "max"


@dataclass(frozen=True)
class Bracket:
    """A scheduler, and the marks at which it compares trials.

    Attributes:
        scheduler: A `TrialScheduler` made with `TIME`, `VALUE` and `MODE`. It gets a `NamedTrial` where it declares a `Trial`.
        rungs: The marks; empty for a scheduler without rungs.
    """

    scheduler: Any
    rungs: tuple[int, ...] = ()


@dataclass(frozen=True)
class NamedTrial:
    """What Ray's schedulers look at in a trial."""

    trial_id: TrialKey


class Judge(FIFOScheduler):
    """Decides at each evaluation whether a trial goes on; nothing is ever paused.

    Attributes:
        marks: Env steps of a trial's evaluations, the last of them its whole budget.
        controller: Tune's, once there is a trial.
    """

    controller: TuneController | None = None

    def __init__(
        self,
        brackets: Sequence[Bracket],
        marks: Sequence[int],
        turns: Sequence[int] = (0,),
        key_of: Callable[[Trial], TrialKey] | None = None,
    ) -> None:
        """Takes the schedulers.

        Args:
            brackets: The schedulers.
            marks: Env steps of a trial's evaluations, ascending, the last of them the budget.
            turns: The bracket of the trials number 0, 1, and so on; after the last begin again.
            key_of: Names a trial; None for Tune's id of it. A key that is no number counts as the next number.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.marks = tuple(marks)
        self._brackets = tuple(brackets)
        self._turns = tuple(turns)
        self._key_of = key_of
        self._keys: dict[str, TrialKey] = {}
        self._numbers: dict[TrialKey, int] = {}
        self._reached: dict[TrialKey, int] = {}

    def rungs(self, key: TrialKey) -> tuple[int, ...]:
        """The marks at which a trial is compared with others."""
        return self._bracket(key).rungs

    def learn(self, rows: Iterable[Row]) -> None:
        """Remembers what earlier trials have reported; what is known already changes nothing.

        Args:
            rows: The trials, in the order in which they were begun. A trial that is at work here is not among them.
        """
        for key, points in rows:
            scheduler, trial = self._bracket(key).scheduler, NamedTrial(key)
            for num_timesteps, value in points:
                point = self._new_point(key, num_timesteps, value)
                if point is not None:
                    scheduler.on_trial_add(None, trial)
                    scheduler.on_trial_complete(None, trial, point)

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Takes the metric that `TuneConfig` names; its mode has to be `max`."""
        return mode in (None, MODE) and super().set_search_properties(metric, mode, **spec)

    def on_trial_add(self, tune_controller: TuneController, trial: Trial) -> None:
        """Takes a trial in, or takes it in again after its actor was lost."""
        self.controller = tune_controller
        key = self._keys.setdefault(trial.trial_id, self._name(trial))
        self._bracket(key).scheduler.on_trial_add(tune_controller, NamedTrial(key))

    def on_trial_result(self, tune_controller: TuneController, trial: Trial, result: dict[str, Any]) -> str:
        """Decides whether a trial goes on.

        Returns:
            `STOP` or `CONTINUE`. A trial with its whole budget behind it always stops, as a finished one.

        Raises:
            KeyError: The result has no `timesteps_total` or lacks the metric: nothing could ever be decided.
        """
        key = self._keys[trial.trial_id]
        point = self._new_point(key, result[TIMESTEPS_TOTAL], result[self.metric])
        if point is None:
            return TrialScheduler.CONTINUE
        action: str = self._bracket(key).scheduler.on_trial_result(tune_controller, NamedTrial(key), point)
        return TrialScheduler.STOP if point[TIME] >= self.marks[-1] else action

    def on_trial_complete(self, tune_controller: TuneController, trial: Trial, result: dict[str, Any]) -> None:
        """Takes the last result in, if the trial has ended by itself with it."""
        key = self._keys.pop(trial.trial_id)
        scheduler = self._bracket(key).scheduler
        point = self._new_point(key, result.get(TIMESTEPS_TOTAL), result.get(self.metric))
        if point is None:
            scheduler.on_trial_remove(tune_controller, NamedTrial(key))
        else:
            scheduler.on_trial_complete(tune_controller, NamedTrial(key), point)

    def on_trial_remove(self, tune_controller: TuneController, trial: Trial) -> None:
        """Forgets a trial that waits and will not run; what it has reported stays."""
        key = self._keys.pop(trial.trial_id)
        self._bracket(key).scheduler.on_trial_remove(tune_controller, NamedTrial(key))

    def debug_string(self) -> str:
        """What Ray's schedulers say of themselves."""
        return "\n".join(bracket.scheduler.debug_string() for bracket in self._brackets)

    def _name(self, trial: Trial) -> TrialKey:
        return str(trial.trial_id) if self._key_of is None else self._key_of(trial)

    def _bracket(self, key: TrialKey) -> Bracket:
        number = key if isinstance(key, int) else self._numbers.setdefault(key, len(self._numbers))
        return self._brackets[self._turns[number % len(self._turns)]]

    def _new_point(self, key: TrialKey, num_timesteps: int | None, value: float | None) -> Mapping[str, float] | None:
        """What to tell a scheduler; None when there is nothing that it does not know already."""
        if num_timesteps is None or value is None or not math.isfinite(value):
            return None
        mark = mark_reached(self.marks, num_timesteps)
        if mark <= self._reached.get(key, 0):
            return None
        self._reached[key] = mark
        return {TIME: mark, VALUE: value}
