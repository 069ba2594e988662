"""Population based training: trials side by side, of which the weak take over the state and the scalars of a strong one.

The members of a population differ in nothing but scalars that may change while a model trains. Networks, rollouts and batches
are the file's for all of them, since each may have to go on with another's weights.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from ray.tune.result import TIMESTEPS_TOTAL
from ray.tune.schedulers import PopulationBasedTraining

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.schedule.budget import mark_reached
from lit_sb3_ray.tuning.schedule.scalars import SCALARS
from lit_sb3_ray.tuning.space.conversion import key_of
from lit_sb3_ray.tuning.space.function_space import FunctionSpace
from lit_sb3_ray.tuning.space.probing import begin_probe, lowest, nearest
from lit_sb3_ray.tuning.trainable import DRAWN, HYPERPARAMS

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Trial

    from lit_sb3_ray.tuning.space.search_space import SearchSpace
    from lit_sb3_ray.tuning.space.suggesting import Suggester

TIME = "mark"
QUANTILE = 0.25
# Of a trial's config this is what it takes over from another.
CHANGING = (DRAWN, HYPERPARAMS)


@dataclass(frozen=True)
class MemberSpace:
    """What the members of a population differ in. It holds plain data, and can be pickled.

    Attributes:
        distributions: The parameters that may change in training, by name, with their bounds or choices.
        space: The search space that they are of.
        entry: The unprocessed hyperparameters of the file.
        custom: The command line's.
        n_envs: Training envs, if not those of the hyperparameters.
    """

    distributions: Mapping[str, BaseDistribution]
    space: SearchSpace
    entry: Mapping[str, Any]
    custom: Mapping[str, Any]
    n_envs: int | None

    def sample(self, trial: Suggester) -> None:
        """Has a trial draw a member's first parameters; nothing speaks for other samplers than a random one here."""
        for name, distribution in self.distributions.items():
            if isinstance(distribution, IntDistribution):
                trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
            elif isinstance(distribution, FloatDistribution):
                trial.suggest_float(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
            else:
                assert isinstance(distribution, CategoricalDistribution)
                trial.suggest_categorical(name, distribution.choices)

    def hyperparams(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Tells what parameters mean: hyperparameters to go over the file's, all of them for `set_scalars`."""
        return self.space.hyperparams(params, self.entry, self.custom, self.n_envs)

    def apply(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Makes a trial's config whole again after its parameters were changed.

        Args:
            config: A config with parameters, maybe out of bounds, under `params`.

        Returns:
            A copy with the nearest parameters that are within bounds, and what they mean under `hyperparams`.
        """
        within = nearest(config[DRAWN])
        params = {name: within(name, distribution) for name, distribution in self.distributions.items()}
        return {**config, DRAWN: params, HYPERPARAMS: self.hyperparams(params)}


class PopulationTraining(PopulationBasedTraining):
    """Ray's population based training, at a study's marks, with random numbers of its own.

    Which trial takes over which still depends on which reports first, so a study on several CPUs is not the same twice.

    Attributes:
        controller: Tune's, once there is a trial.
    """

    controller: TuneController | None = None

    def __init__(self, marks: Sequence[int], seed: int, **settings: Any) -> None:
        """Takes Ray's settings.

        Args:
            marks: Env steps of the evaluations.
            seed: For how parameters change, and from whom they are taken.
            settings: Arguments of `PopulationBasedTraining`, without its `time_attr`.
        """
        super().__init__(time_attr=TIME, **settings)
        self._marks = tuple(marks)
        self._random_state = random.Random(seed).getstate()

    def on_trial_add(self, tune_controller: TuneController, trial: Trial) -> None:
        """Takes a trial in, also one that a searcher has drawn.

        Ray refuses searchers here, since they would learn from parameters that have changed since. Ours draws the first
        parameters only.
        """
        self.controller = tune_controller
        with self._own_random():
            super().on_trial_add(SimpleNamespace(search_alg=None), trial)  # type: ignore[arg-type]

    def on_trial_result(self, tune_controller: TuneController, trial: Trial, result: dict[str, Any]) -> str:
        """Decides whether a trial goes on as it is, takes over another's state, or makes room for one that waits.

        A trial that takes over another's state keeps its number and whatever else its config has beside the parameters.
        """
        before = trial.config
        mark = mark_reached(self._marks, result[TIMESTEPS_TOTAL])
        with self._own_random():
            action = super().on_trial_result(tune_controller, trial, {**result, TIME: mark})
        if trial.config is not before:
            own = {key: value for key, value in before.items() if key not in CHANGING}
            trial.set_config({**trial.config, **own})  # type: ignore[no-untyped-call]
        return str(action)

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        """Puts Python's global generator, which Ray draws from, into a state of our own for a while."""
        outer = random.getstate()
        random.setstate(self._random_state)
        try:
            yield
        finally:
            self._random_state = random.getstate()
            random.setstate(outer)


def find_members(
    space: SearchSpace, entry: Mapping[str, Any], custom: Mapping[str, Any] | None = None, n_envs: int | None = None
) -> MemberSpace:
    """Finds what the members of a population differ in: the part of a search space that may change in training.

    Args:
        space: The search space, without what the command line settles.
        entry: The unprocessed hyperparameters of the file.
        custom: The command line's.
        n_envs: Training envs, if not those of the hyperparameters.

    Raises:
        ConfigError: Nothing in the space may change in training, a scalar has choices that are no numbers, or the space is a
            function, which can only be drawn from as a whole.
    """
    if isinstance(space.kind, FunctionSpace):
        raise ConfigError(f"scheduler 'pbt' needs a built-in search space or one in a file, not a function: {space.label}")
    probe = begin_probe(lowest)
    space.sample(probe)
    distributions = {name: bounds for name, bounds in probe.distributions.items() if key_of(name) in SCALARS}
    if not distributions:
        known = ", ".join(sorted(SCALARS))
        raise ConfigError(f"scheduler 'pbt' finds nothing that it may change in {space.label}; it may change {known}")
    members = MemberSpace(distributions, space, dict(entry), dict(custom or {}), n_envs)
    for name, distribution in distributions.items():
        for choice in getattr(distribution, "choices", ()):
            _check_number(members.hyperparams({name: choice})[key_of(name)], name, space)
    return members


def build_pbt(members: MemberSpace, marks: Sequence[int], seed: int) -> PopulationTraining:
    """Builds population based training for a `TuneConfig` that names the metric, with mode `max`.

    At each evaluation a trial of the worst quarter takes over the newest checkpoint of one of the best quarter, and its
    parameters, each of them a fifth more or less, or drawn anew.

    Args:
        members: What the trials differ in; their configs have its parameters under `params`.
        marks: Env steps of a trial's evaluations.
        seed: See `PopulationTraining`.
    """
    return PopulationTraining(
        marks,
        seed,
        perturbation_interval=marks[0],
        hyperparam_mutations={DRAWN: {name: _mutation(bounds) for name, bounds in members.distributions.items()}},
        quantile_fraction=QUANTILE,
        custom_explore_fn=members.apply,
    )


def _mutation(distribution: BaseDistribution) -> Callable[[], float] | list[Any]:
    """As Ray takes it: the choices, of which neighbours follow each other, or what draws a number."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    return partial(_draw, distribution)


def _draw(distribution: Any) -> float:
    """Draws a number, which may lie between two steps, from Python's global generator."""
    if distribution.log:
        return math.exp(random.uniform(math.log(distribution.low), math.log(distribution.high)))
    return random.uniform(distribution.low, distribution.high)


def _check_number(value: Any, name: str, space: SearchSpace) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ConfigError(f"scheduler 'pbt' changes numbers only, but {name!r} may be {value!r} ({space.label})")
