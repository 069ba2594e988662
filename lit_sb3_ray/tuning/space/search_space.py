"""What a study searches: the built-in space of the algorithm, or one of the user's."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.hyperparams import merge, origins, resolve
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.built_in_space import BuiltInSpace
from lit_sb3_ray.tuning.space.file_space import FileSpace
from lit_sb3_ray.tuning.space.function_space import FLAG, FunctionSpace
from lit_sb3_ray.tuning.space.parameters import read_parameters
from lit_sb3_ray.tuning.space.probing import Draw, begin_probe, covering, lowest
from lit_sb3_ray.tuning.space.spaces import space_name
from lit_sb3_ray.tuning.space.suggesting import Suggester

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchSpace:
    """A search space. It holds plain data, and can be pickled.

    Attributes:
        algo: The algorithm: a name in `ALGOS` or `pkg.mod:Class`.
        kind: Where it comes from.
    """

    algo: str
    kind: BuiltInSpace | FileSpace | FunctionSpace

    @property
    def label(self) -> str:
        """How messages name it."""
        return self.kind.label

    def sample(self, trial: Suggester) -> None:
        """Draws one point.

        Args:
            trial: An `optuna.Trial`, or anything with its three `suggest_` methods; it keeps what was drawn.
        """
        self.kind.sample(trial)

    def hyperparams(
        self,
        params: Mapping[str, Any],
        entry: Mapping[str, Any],
        custom: Mapping[str, Any] | None = None,
        n_envs: int | None = None,
    ) -> dict[str, Any]:
        """Tells what drawn values mean. The same values give the same hyperparameters, now and later.

        Args:
            params: The values by the names they were drawn under.
            entry: The file's hyperparameters, unprocessed. Of its dicts of arguments stays what was not drawn.
            custom: The command line's.
            n_envs: Training envs, if not those of the hyperparameters.

        Returns:
            Hyperparameters to go between `entry` and `custom`. The batch of an on-policy algorithm divides the rollout.

        Raises:
            ConfigError: The values are not of this space, or `entry` has something unreadable.
        """
        return self.kind.hyperparams(params, entry, custom, n_envs)

    def distributions(self) -> dict[str, BaseDistribution] | None:
        """Gives the distributions by name; None where they depend on what is drawn."""
        return self.kind.distributions()

    @property
    def numbers_only(self) -> bool:
        """Whether every parameter is a number."""
        return not any(hasattr(distribution, "choices") for distribution in self.probe().values())

    def settle(self, custom: Mapping[str, Any] | None) -> SearchSpace:
        """Leaves out what the command line settles, and tells so.

        What a function draws cannot be left out: it is drawn in vain, with a warning.

        Args:
            custom: The command line's hyperparameters.

        Returns:
            The space of what is left.

        Raises:
            ConfigError: Nothing is left.
        """
        if not custom:
            return self
        kind, settled = self.kind.without(custom)
        rest = replace(self, kind=kind)
        if settled:
            logger.warning("Given, and so not searched: %s", ", ".join(settled))
            if not rest.probe():
                raise problem(f"nothing is left to search of {self.label}", "--hyperparams")
        if isinstance(kind, FunctionSpace):
            vain = sorted(self._drawn_hyperparams({}, custom, covering(0)).keys() & custom.keys())
            if vain:
                logger.warning("Given, and so drawn in vain by %s: %s", self.label, ", ".join(vain))
        return rest

    def check(
        self, entry: Mapping[str, Any], custom: Mapping[str, Any] | None = None, n_envs: int | None = None, where: str = "file"
    ) -> None:
        """Checks that what can be drawn makes valid hyperparameters: every choice, and both bounds of every number.

        Args:
            entry: The file's hyperparameters, unprocessed.
            custom: The command line's.
            n_envs: Training envs, if not those of the hyperparameters.
            where: Where the entry stands, for messages.

        Raises:
            ConfigError: Something does not: one line with the hyperparameter and the space.
        """
        choices = [len(getattr(distribution, "choices", ())) for distribution in self.probe().values()]
        for turn in range(max([2, *choices])):
            drawn = self._drawn_hyperparams(entry, custom, covering(turn), n_envs)
            merged = merge(entry, drawn, custom)
            sources = {**dict.fromkeys(drawn, self.label), **origins(None, custom)}
            resolve(merged, self.algo, where, n_timesteps=None if "n_timesteps" in merged else 1, sources=sources)

    def towards(self, entry: Mapping[str, Any], n_envs: int | None = None) -> Draw:
        """Makes a draw that comes as near to a file's hyperparameters as the space allows; see `packaged_params`."""
        return self.kind.towards(entry, n_envs)

    def stated(self, names: Iterable[str], entry: Mapping[str, Any], n_envs: int | None = None) -> dict[str, Any]:
        """Tells what hyperparameters say themselves of what is searched, be it in the space or not.

        Args:
            names: The parameters.
            entry: The hyperparameters, unprocessed.
            n_envs: Training envs, if not those of the hyperparameters.

        Returns:
            Values that any storage can keep, by name; what is left open is left out.
        """
        found = self.kind.stated(entry, n_envs)
        values = {name: found(name) for name in names}
        plain = (str, int, float, bool)
        return {name: value if isinstance(value, plain) else str(value) for name, value in values.items() if value is not None}

    def probe(self) -> dict[str, BaseDistribution]:
        """Gives the distributions of one point's parameters by name."""
        trial = begin_probe(lowest)
        self.sample(trial)
        return dict(trial.distributions)

    def _drawn_hyperparams(
        self, entry: Mapping[str, Any], custom: Mapping[str, Any] | None, draw: Draw, n_envs: int | None = None
    ) -> dict[str, Any]:
        trial = begin_probe(draw)
        self.sample(trial)
        return self.hyperparams(trial.params, entry, custom, n_envs)


def find_space(algo: str, source: str | None = None, her: bool = False) -> SearchSpace:
    """Finds a search space.

    Args:
        algo: The algorithm: a name in `ALGOS` or `pkg.mod:Class`.
        source: None for the built-in space of the algorithm, or of the nearest it descends from; a `.yml` or `.yaml` file (see
            `read_parameters`); or `pkg.mod:function` (see `FunctionSpace`), which is called once to try it.
        her: Whether the replay buffer is a `HerReplayBuffer`, whose arguments the built-in spaces then search too.

    Raises:
        ConfigError: There is none, or something in it is wrong.
    """
    if source is None:
        space_name(algo)
        return SearchSpace(algo, BuiltInSpace(algo, her))
    if source.endswith((".yml", ".yaml")):
        return SearchSpace(algo, FileSpace(algo, source, read_parameters(source, algo)))
    if ":" not in source:
        raise ConfigError(f"expected a .yml or .yaml file, or pkg.mod:function, not {source!r} ({FLAG})")
    space = FunctionSpace(algo, source)
    space.check()
    return SearchSpace(algo, space)
