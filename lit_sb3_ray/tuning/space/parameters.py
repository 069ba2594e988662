"""Search spaces in files: `name: {type: float|int|categorical, low, high, log, step, choices}`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import yaml

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import unknown
from lit_sb3_ray.tuning.space.nesting import MERGED, check_name
from lit_sb3_ray.tuning.space.suggesting import Suggester

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FIELDS = {
    "float": frozenset({"type", "low", "high", "log", "step"}),
    "int": frozenset({"type", "low", "high", "log", "step"}),
    "categorical": frozenset({"type", "choices"}),
}
"""What each type of parameter is described by."""


MOST = {"float": 1e100, "int": 2**53}
"""The largest bounds: Optuna counts in floats, in which whole numbers are exact up to there."""


@dataclass(frozen=True)
class Parameter:
    """One searched hyperparameter.

    Attributes:
        name: The hyperparameter, with dots inside dicts.
        kind: `float`, `int` or `categorical`.
        low: Lower bound of a number, included.
        high: Upper bound, included; it is a whole number of steps above `low`.
        log: Whether numbers are drawn log-uniformly.
        step: Distance between two numbers; None for all floats of the range.
        labels: What is drawn for each choice: the choice itself or, where a storage could not keep it or tell it from
            another one, its YAML text.
        choices: What each label stands for.
    """

    name: str
    kind: str
    low: int | float = 0
    high: int | float = 0
    log: bool = False
    step: int | float | None = None
    labels: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()

    def draw(self, trial: Suggester) -> None:
        """Draws a value."""
        if self.kind == "categorical":
            trial.suggest_categorical(self.name, self.labels)
        elif self.kind == "int":
            trial.suggest_int(self.name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        else:
            trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)

    def meaning(self, drawn: Any) -> Any:
        """Gives the value of the hyperparameter that a drawn value stands for.

        Raises:
            ConfigError: It is none of the choices.
        """
        if self.kind != "categorical":
            return drawn
        for label, choice in zip(self.labels, self.choices, strict=True):
            if label == drawn and isinstance(label, bool) == isinstance(drawn, bool):
                return choice
        raise problem(f"{self.name!r} has no choice {drawn!r}", "trial")

    def distribution(self) -> BaseDistribution:
        """Builds Optuna's distribution."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.kind == "categorical":
            return CategoricalDistribution(self.labels)
        if self.kind == "int":
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)


def read_parameters(path: str, algo: str) -> tuple[Parameter, ...]:
    """Reads a search space from a YAML file.

    Args:
        path: The file.
        algo: The algorithm whose hyperparameters are named.

    Raises:
        ConfigError: There is no such file, or anything in it is wrong: one line with the file, the parameter, the value, and
            what would be right.
    """
    content = read_yaml(path)
    if not isinstance(content, Mapping) or not content:
        kind = "an empty file" if content in (None, {}) else f"{type(content).__name__} {str(content)[:40]!r}"
        raise problem(f"expected parameters by the names of hyperparameters, not {kind}", path)
    for name in content:
        check_name(name, algo, path)
        key = name.split(".")[0]
        if key != name and key in content and key not in MERGED:
            raise problem(f"{key!r} is searched as a whole, and so nothing inside of it can be: {name!r}", path)
    return tuple(_parameter(name, description, f"{name}, {path}") for name, description in content.items())


def label_text(value: Any) -> str:
    """Writes a value as one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _parameter(name: str, description: Any, where: str) -> Parameter:
    if not isinstance(description, Mapping):
        raise problem(f"expected {{type: float|int|categorical, ...}}, not {description!r}", where)
    kind = description.get("type")
    if "type" not in description:
        raise problem(f"it has no type: one of {', '.join(FIELDS)}", where)
    if not isinstance(kind, str) or kind not in FIELDS:
        raise unknown("type", str(kind), FIELDS, where)
    for field in description:
        if field not in FIELDS[kind]:
            raise unknown(f"field of a {kind} parameter", str(field), FIELDS[kind], where)
    if kind == "categorical":
        return _categorical(name, description, where)
    return _range(name, kind, description, where)


def _range(name: str, kind: str, description: Mapping[str, Any], where: str) -> Parameter:
    low, high = (_number(description, bound, kind, where) for bound in ("low", "high"))
    if low > high:
        raise problem(f"low {low} is above high {high}", where)
    log = description.get("log", False)
    if not isinstance(log, bool):
        raise problem(f"log: expected true or false, not {log!r}", where)
    if log and (low < 1 if kind == "int" else low <= 0):
        raise problem(f"low: with log it must be {'at least 1' if kind == 'int' else 'above 0'}, not {low}", where)
    if description.get("step") is None:
        return Parameter(name, kind, low, high, log)
    step = _number(description, "step", kind, where)
    if step <= 0:
        raise problem(f"step: expected a number above 0, not {step}", where)
    if log:
        raise problem("log and step exclude each other: take one away", where)
    try:
        return Parameter(name, kind, low, _last_step(low, high, step), log, step)
    except InvalidOperation as error:  # More steps than decimals have digits for.
        raise problem(f"step: {step} is too small for a range from {low} to {high}", where) from error


def _number(description: Mapping[str, Any], field: str, kind: str, where: str) -> int | float:
    if field not in description:
        raise problem(f"it has no {field}", where)
    value = description[field]
    number = to_number(value)
    if number is None or number != number or abs(number) == math.inf:
        raise problem(f"{field}: expected a number, not {value!r}", where)
    if abs(number) > MOST[kind]:
        raise problem(f"{field}: expected a number up to {MOST[kind]:g}, not {value!r}", where)
    if kind == "float":
        return float(number)
    if number != int(number):
        raise problem(f"{field}: expected a whole number, not {value!r}", where)
    return int(number)


def _last_step(low: int | float, high: int | float, step: int | float) -> int | float:
    """The last number of the range that is a whole number of steps above `low`, counted in decimals as people write them."""
    first, last, distance = (Decimal(str(number)) for number in (low, high, step))
    reached = first + (last - first) // distance * distance
    return int(reached) if isinstance(low, int) else float(reached)


def _categorical(name: str, description: Mapping[str, Any], where: str) -> Parameter:
    choices = description.get("choices")
    if not isinstance(choices, list) or not choices:
        shown = "no choices" if choices in (None, []) else repr(choices)
        raise problem(f"choices: expected a list of at least one value, not {shown}", where)
    texts = [label_text(choice) for choice in choices]
    for text in texts:
        if texts.count(text) > 1:
            raise problem(f"choices: {text} stands twice", where)
    labels = tuple(choice if _is_kept(choice, choices) else text for choice, text in zip(choices, texts, strict=True))
    alike = [label for label in labels if labels.count(label) > 1]
    if alike:
        raise problem(f"choices: {alike[0]!r} stands for two values", where)
    return Parameter(name, "categorical", labels=labels, choices=tuple(choices))


def _is_kept(choice: Any, choices: list[Any]) -> bool:
    """Whether a storage keeps a choice as it is and tells it from the others: for Optuna, `1`, `1.0` and `true` are one."""
    if isinstance(choice, float) and not math.isfinite(choice):
        return False
    return isinstance(choice, str | int | float | bool | None) and sum(choice == other for other in choices) == 1
