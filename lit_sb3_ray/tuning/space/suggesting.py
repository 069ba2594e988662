"""What a search space needs of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Suggester(Protocol):
    """The part of an `optuna.Trial` that a space uses."""

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False) -> float:
        """Draws a number from `low` to `high`, in steps of `step`, log-uniformly if `log`."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Draws a whole number from `low` to `high`, both included."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Draws one of the choices."""


class Settled:
    """A trial of which some parameters are settled: they are returned, and not drawn."""

    def __init__(self, trial: Suggester, given: Mapping[str, Any]) -> None:
        self._trial = trial
        self._given = given

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False) -> float:
        """Draws a number, or returns the settled value."""
        if name in self._given:
            return self._given[name]  # type: ignore[no-any-return]
        return self._trial.suggest_float(name, low, high, step=step, log=log)

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Draws a whole number, or returns the settled value."""
        if name in self._given:
            return self._given[name]  # type: ignore[no-any-return]
        return self._trial.suggest_int(name, low, high, step=step, log=log)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Draws one of the choices, or returns the settled value."""
        return self._given[name] if name in self._given else self._trial.suggest_categorical(name, choices)
