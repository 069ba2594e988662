"""A study's rows as reports read them: numbers that can be drawn, best first, whatever system has written the study."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optuna.study import StudyDirection
from optuna.trial import TrialState

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.tuning.rows import DRIVER, each_once, is_broken_off, trained
from lit_sb3_ray.tuning.schedule.schedulers import PRUNES_NOTHING

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

# User attributes of a study.
ALGO, ENV, BUDGET, MARKS, COMMAND, PRUNER = "algo", "env", "n_timesteps", "marks", "command", "pruner"
# The flags that a run needs beside the hyperparameters, and the env steps of the study's file with that file's name.
RUN_FLAGS, FULL_BUDGET = "run_flags", "full_budget"

BROKEN_OFF = "broken off"

LARGEST = 1e100
"""A number beyond it, on either side, is left out of rankings and figures as NaN and infinity are: a scale cannot hold it."""

_ORDER = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING, TrialState.FAIL, TrialState.WAITING)


@dataclass(frozen=True)
class Extent:
    """How many rows a study has. Neither number ever becomes less while its storage is whole.

    Attributes:
        rows: All of them.
        ended: Those that have ended.
    """

    rows: int
    ended: int


@dataclass(frozen=True)
class StudyRecord:
    """A study at one moment.

    Attributes:
        name: The study's name.
        maximize: Whether large values are good.
        objectives: How many values a trial has; the first of them counts.
        attributes: The study's user attributes.
        trials: All trials by number, each by the last of its rows where it was broken off and gone on with.
        extent: How far its rows have come.
    """

    name: str
    maximize: bool
    objectives: int
    attributes: dict[str, Any]
    trials: tuple[FrozenTrial, ...]
    extent: Extent

    @property
    def algo(self) -> str | None:
        """The algorithm, as the study or the command that began it says."""
        return _text(self.attributes.get(ALGO)) or _flag(self.attributes.get(COMMAND), "--algo")

    @property
    def env_id(self) -> str | None:
        """The environment, as the study or the command that began it says."""
        return _text(self.attributes.get(ENV)) or _flag(self.attributes.get(COMMAND), "--env")

    @property
    def budget(self) -> int | None:
        """Env steps of a whole trial."""
        number = to_number(self.attributes.get(BUDGET))
        return int(number) if number is not None and is_drawable(number) else max(self.marks, default=None)

    @property
    def marks(self) -> tuple[int, ...]:
        """Env steps at which the trials are evaluated, and may be cut; empty when the study does not say."""
        return whole_numbers(self.attributes.get(MARKS))


def record(study: Study) -> StudyRecord:
    """Reads all of a study at once.

    Args:
        study: The study; it may be running.
    """
    rows = study.get_trials(deepcopy=False)
    return StudyRecord(
        study.study_name,
        study.directions[0] != StudyDirection.MINIMIZE,
        len(study.directions),
        dict(study.user_attrs),
        tuple(sorted(each_once(rows), key=lambda trial: trial.number)),
        Extent(len(rows), sum(row.state.is_finished() for row in rows)),
    )


def is_drawable(value: Any) -> bool:
    """Tells whether a value is a number that a scale can hold."""
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) <= LARGEST


def value_of(trial: FrozenTrial) -> float | None:
    """The value of a complete trial; None for any other trial, and for NaN and infinity."""
    if trial.state != TrialState.COMPLETE or not trial.values:
        return None
    return float(trial.values[0]) if is_drawable(trial.values[0]) else None


def curve_of(trial: FrozenTrial) -> list[tuple[int, float]]:
    """The intermediate values of a trial that can be drawn, by env steps."""
    return [(step, float(value)) for step, value in sorted(trial.intermediate_values.items()) if is_drawable(value)]


def last_of(trial: FrozenTrial) -> float | None:
    """The value of a complete trial, the last intermediate one of any other; None when there is none."""
    value = value_of(trial)
    if value is not None:
        return value
    curve = curve_of(trial)
    return curve[-1][1] if curve else None


def true_params(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters of a trial with which it has trained: all but some of a warm start's, whose row has the nearest ones."""
    known = trained(trial)
    return {name: value for name, value in trial.params.items() if name in known and known[name] == value}


def best_first(study: StudyRecord) -> list[FrozenTrial]:
    """The complete trials, the best first; equals by number."""
    sign = -1.0 if study.maximize else 1.0
    ranked = [(value, trial) for trial in study.trials if (value := value_of(trial)) is not None]
    return [trial for _, trial in sorted(ranked, key=lambda pair: (sign * pair[0], pair[1].number))]


def by_merit(study: StudyRecord) -> list[FrozenTrial]:
    """All trials: the complete ones, the best first, then the pruned, the running, the failed and the waiting ones."""
    sign = -1.0 if study.maximize else 1.0

    def merit(trial: FrozenTrial) -> tuple[int, bool, float, int]:
        last = last_of(trial)
        return _ORDER.index(trial.state), last is None, sign * (last or 0.0), trial.number

    return sorted(study.trials, key=merit)


def count_states(trials: Iterable[FrozenTrial]) -> dict[str, int]:
    """Counts trials by state, such as `{"complete": 3, "broken off": 1}`; states without trials are left out."""
    counts = {state.name.lower(): 0 for state in _ORDER} | {BROKEN_OFF: 0}
    for trial in trials:
        # Of another system's failures nothing is known.
        is_ours = DRIVER in trial.user_attrs and is_broken_off(trial)
        counts[BROKEN_OFF if is_ours else trial.state.name.lower()] += 1
    return {name: count for name, count in counts.items() if count}


def prunes(study: StudyRecord) -> bool:
    """Whether weak trials are ended early; of a study that does not say so, whether any was."""
    pruner = study.attributes.get(PRUNER)
    return any(trial.state == TrialState.PRUNED for trial in study.trials) or pruner not in (None, *PRUNES_NOTHING)


def whole_numbers(value: Any) -> tuple[int, ...]:
    """The numbers of a list, as ints; whatever is no list, or no number in it, is left out."""
    items = value if isinstance(value, list | tuple) else ()
    return tuple(int(item) for item in items if not isinstance(item, bool) and is_drawable(item))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _flag(command: Any, flag: str) -> str | None:
    """Finds the word after a flag in a command line, the last time it stands there."""
    if not isinstance(command, str):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found = [value for word, value in itertools.pairwise(words) if word == flag]
    found += [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
    return _text(found[-1]) if found else None
