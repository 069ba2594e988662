"""The rows of a study: what each trial keeps in Optuna's storage, and which of them count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

# User attributes of a trial.
FAILURE, TRACEBACK = "failure", "traceback"
TIMESTEPS = "num_timesteps"
HYPERPARAMS = "hyperparams"
SEED, SPREAD, SEED_VALUES = "seed", "spread", "seed_values"
JUMPED = "jumped"
PARAMS_AT_END = "params_at_end"
DRIVER = "driver"
FOLDER, CHECKPOINT = "folder", "checkpoint"
CONTINUES = "continues"
WARM_START = "warm_start"
TRAINED = "trained"
SURPLUS = "surplus"

FAIL = "FAIL"


def counts(row: FrozenTrial) -> bool:
    """Whether a row counts towards a study's number of trials: not one that was lost with its driver or broken off."""
    return row.state.name != FAIL or FAILURE in row.user_attrs


def finished(row: FrozenTrial) -> bool:
    """Whether a row has come to an end of its own: complete, pruned, or failed by an error of its own."""
    return row.state.is_finished() and counts(row)


def is_broken_off(row: FrozenTrial) -> bool:
    """Whether a row was ended by something that has nothing to do with its hyperparameters."""
    return row.state.name == FAIL and FAILURE not in row.user_attrs and SURPLUS not in row.user_attrs


def each_once(rows: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Finds the row in which each trial stands now: none that another row goes on with, and none beyond the study's total."""
    rows = list(rows)
    # In a study of another system's, these attributes may be anything.
    continued = {number for row in rows if isinstance(number := row.user_attrs.get(CONTINUES), int)}
    return [row for row in rows if row.state.name != FAIL or not (row.number in continued or SURPLUS in row.user_attrs)]


def trained(row: FrozenTrial | Trial) -> dict[str, Any]:
    """What a trial has trained with, by the names of the search space.

    That is what it has drawn; the trial of a warm start has the file's own hyperparameters, and in its row the point of the
    space that is nearest to them. What the file does not say is left out.
    """
    values = row.user_attrs.get(TRAINED)
    return dict(values) if isinstance(values, Mapping) else dict(row.params)


def to_continue(rows: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Finds the rows that were broken off and that no other row goes on with."""
    return [row for row in each_once(rows) if is_broken_off(row) and row.params]


def break_off(study: Study, row: FrozenTrial) -> None:
    """Ends a running row that nobody works on any more, so that none looks as if it were running."""
    from optuna.trial import TrialState

    study.tell(row.number, state=TrialState.FAIL)


def enqueue_continuation(study: Study, row: FrozenTrial, moved: Mapping[str, str] | None = None) -> None:
    """Puts a broken-off row back into the queue, with what it had drawn and reached.

    Args:
        study: The study.
        row: The row.
        moved: Folders that its checkpoint may lie in, and where these are now.
    """
    kept = {key: value for key, value in row.user_attrs.items() if key not in (DRIVER, CONTINUES, FOLDER)}
    for before, now in (moved or {}).items():
        if CHECKPOINT in kept and kept[CHECKPOINT]["path"].startswith(f"{before}/"):
            kept[CHECKPOINT] = {**kept[CHECKPOINT], "path": now + kept[CHECKPOINT]["path"].removeprefix(before)}
    study.enqueue_trial(row.params, user_attrs={**kept, CONTINUES: row.number})


def fail(study: Study, trial: Trial, failure: str, trace: str) -> None:
    """Ends a row as failed, with its reason."""
    from optuna.trial import TrialState

    trial.set_user_attr(FAILURE, failure)
    trial.set_user_attr(TRACEBACK, trace)
    study.tell(trial, state=TrialState.FAIL)


def one_line(error: BaseException) -> str:
    """An exception as one line: its class and what it says."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
