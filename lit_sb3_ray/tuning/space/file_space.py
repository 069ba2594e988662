"""A search space in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.batch import fit_batch
from lit_sb3_ray.tuning.space.nesting import nest
from lit_sb3_ray.tuning.space.parameters import Parameter
from lit_sb3_ray.tuning.space.probing import Draw, nearest
from lit_sb3_ray.tuning.space.suggesting import Suggester
from lit_sb3_ray.tuning.space.warm_start import start_of, value_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


@dataclass(frozen=True)
class FileSpace:
    """What a YAML file says is searched.

    Attributes:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        label: The file.
        parameters: Its parameters.
        settled: Names of those that are given and so not drawn.
    """

    algo: str
    label: str
    parameters: tuple[Parameter, ...]
    settled: frozenset[str] = frozenset()

    @property
    def drawn(self) -> tuple[Parameter, ...]:
        """The parameters that are drawn."""
        return tuple(parameter for parameter in self.parameters if parameter.name not in self.settled)

    def sample(self, trial: Suggester) -> None:
        """Draws one point."""
        for parameter in self.drawn:
            parameter.draw(trial)

    def hyperparams(
        self, params: Mapping[str, Any], entry: Mapping[str, Any], custom: Mapping[str, Any] | None, n_envs: int | None
    ) -> dict[str, Any]:
        """Puts what was drawn into hyperparameters; a batch divides the rollout (see `fit_batch`).

        Raises:
            ConfigError: A parameter or a choice is not in the file, or `entry` has something unreadable to merge into.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in params:
            if name not in known:
                raise problem(f"the trial has drawn {name!r}, which is not in the search space", self.label)
        values = nest({name: known[name].meaning(value) for name, value in params.items()}, entry)
        batch = fit_batch(self.algo, values, entry, custom, n_envs)
        return values if batch is None else {**values, "batch_size": batch}

    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions."""
        return {parameter.name: parameter.distribution() for parameter in self.drawn}

    def without(self, custom: Mapping[str, Any]) -> tuple[FileSpace, tuple[str, ...]]:
        """Leaves out what given hyperparameters settle; returns the rest, and what was left out."""
        settled = sorted(item.name for item in self.parameters if item.name.split(".")[0] in custom)
        return replace(self, settled=frozenset(settled)), tuple(settled)

    def towards(self, entry: Mapping[str, Any], n_envs: int | None) -> Draw:
        """Makes a draw that comes as near to a file's hyperparameters as the space allows."""
        return nearest({item.name: _wish(item, value_of(item.name, self.algo, entry)) for item in self.parameters})

    def stated(self, entry: Mapping[str, Any], n_envs: int | None) -> Callable[[str], Any]:
        """Makes a look-up of what hyperparameters say themselves, in the words of the file where it has them."""
        known = {parameter.name: parameter for parameter in self.parameters}

        def look(name: str) -> Any:
            value = value_of(name, self.algo, entry)
            label = None if value is None else _label(known[name], value)
            return to_plain(value) if label is None else label

        return look


def _wish(parameter: Parameter, value: Any) -> Any:
    label = _label(parameter, value)
    return start_of(value) if label is None else label


def _label(parameter: Parameter, value: Any) -> Any:
    """What the choice that equals a value is drawn as; None where there is none."""
    if parameter.kind != "categorical":
        return None
    wanted = _comparable(value)
    for label, choice in zip(parameter.labels, parameter.choices, strict=True):
        if _comparable(choice) == wanted and isinstance(choice, bool) == isinstance(value, bool):
            return label
    return None


def _comparable(value: Any) -> Any:
    """One form for all ways to write a value: `dict(pi=[64])` and `{pi: [64]}`, `nn.ReLU` and the class, `1e-3` and 0.001."""
    if isinstance(value, str) and to_number(value) is None:
        try:
            return to_plain(parse_expression(value, ""))
        except ConfigError:  # It is a word, such as `auto`.
            return value
    number = to_number(value)
    return to_plain(value) if number is None else number
