"""A search space in a function of the user's, `pkg.mod:function`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.classes import import_module, split_path
from lit_sb3_ray.config.problems import problem, reason
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.tuning.space.batch import fit_batch
from lit_sb3_ray.tuning.space.nesting import check_name, nest
from lit_sb3_ray.tuning.space.probing import Draw, begin_probe, lowest, nearest
from lit_sb3_ray.tuning.space.suggesting import Suggester
from lit_sb3_ray.tuning.space.warm_start import start_of, value_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FLAG = "--search-space"


@dataclass(frozen=True)
class FunctionSpace:
    """What a function draws: it is called with the trial.

    It may return a dict of hyperparameters, and name what it draws as it likes; or None, and the names it draws under are
    those of hyperparameters, with dots inside dicts. It is called again to replay a trial, with the values of that trial.

    Attributes:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        label: The function's path.
    """

    algo: str
    label: str

    def sample(self, trial: Suggester) -> None:
        """Draws one point.

        Raises:
            ConfigError: The function raises.
        """
        self._call(trial)

    def hyperparams(
        self, params: Mapping[str, Any], entry: Mapping[str, Any], custom: Mapping[str, Any] | None, n_envs: int | None
    ) -> dict[str, Any]:
        """Finds out what drawn values mean; a batch divides the rollout (see `fit_batch`).

        Raises:
            ConfigError: The function raises, or draws something that is not among the values.
        """

        def replayed(name: str, distribution: BaseDistribution) -> Any:
            if name not in params:
                raise self._problem(f"it draws {name!r}, which the trial has not drawn")
            return params[name]

        trial = begin_probe(replayed)
        returned = self._call(trial)
        values = nest(trial.params if returned is None else returned, entry)
        batch = fit_batch(self.algo, values, entry, custom, n_envs)
        return values if batch is None else {**values, "batch_size": batch}

    def distributions(self) -> None:
        """None: what the function will draw is known when it has."""
        return

    def without(self, custom: Mapping[str, Any]) -> tuple[FunctionSpace, tuple[str, ...]]:
        """Leaves nothing out, since the function draws what it draws."""
        return self, ()

    def towards(self, entry: Mapping[str, Any], n_envs: int | None) -> Draw:
        """Makes a draw that comes as near to a file's hyperparameters as the names tell."""

        def draw(name: str, distribution: BaseDistribution) -> Any:
            value = value_of(name, self.algo, entry)
            is_choice = hasattr(distribution, "choices") and value in distribution.choices
            return nearest({name: value if is_choice else start_of(value)})(name, distribution)

        return draw

    def stated(self, entry: Mapping[str, Any], n_envs: int | None) -> Callable[[str], Any]:
        """Makes a look-up of what hyperparameters say themselves, as far as the names are theirs."""
        return lambda name: value_of(name, self.algo, entry)

    def check(self) -> None:
        """Draws once, for nothing.

        Raises:
            ConfigError: The function is not there, raises, draws nothing, or draws or returns what it must not.
        """
        trial = begin_probe(lowest)
        returned = self._call(trial)
        if not trial.params:
            raise self._problem("it draws nothing: it has to call trial.suggest_float, suggest_int or suggest_categorical")
        for name, distribution in trial.distributions.items():
            if "/" in name:
                raise self._problem(f"the name {name!r} must have no '/'")
            for choice in getattr(distribution, "choices", ()):
                if not isinstance(choice, str | int | float | bool | None):
                    raise self._problem(f"{name!r} has the choice {choice!r}: draw a name for it, and return what it means")
        for name in trial.params if returned is None else returned:
            check_name(name, self.algo, f"{self.label}, {FLAG}")

    def _call(self, trial: Any) -> dict[str, Any] | None:
        function = self._function()
        try:
            returned = function(trial)
        except ConfigError:
            raise
        except Exception as error:  # The user's code runs here: whatever it raises says what is wrong with it.
            raise self._problem(f"it raises {reason(error)}") from error
        if returned is None or (isinstance(returned, Mapping) and all(isinstance(name, str) for name in returned)):
            return None if returned is None else dict(returned)
        raise self._problem(f"it returns {returned!r} and not a dict of hyperparameters, or None")

    def _function(self) -> Callable[[Any], Any]:
        module_name, attributes = split_path(self.label, "function", FLAG)
        target: Any = import_module(module_name, self.label, FLAG)
        for attribute in attributes:
            if not hasattr(target, attribute):
                functions = [name for name, value in vars(target).items() if callable(value) and not name.startswith("_")]
                raise unknown(f"function in {module_name!r}:", attribute, functions, FLAG)
            target = getattr(target, attribute)
        if not callable(target):
            raise problem(f"{self.label!r} is no function but {type(target).__name__} {target!r}", FLAG)
        function: Callable[[Any], Any] = target
        return function

    def _problem(self, text: str) -> ConfigError:
        return problem(f"{self.label!r}: {text}", FLAG)
