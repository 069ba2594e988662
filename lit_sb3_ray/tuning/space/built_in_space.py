"""The built-in space of an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.tuning.space.conversion import NETWORKS, convert, key_of
from lit_sb3_ray.tuning.space.probing import Draw, begin_probe, highest, lowest, nearest
from lit_sb3_ray.tuning.space.spaces import sample, space_name
from lit_sb3_ray.tuning.space.suggesting import Settled, Suggester
from lit_sb3_ray.tuning.space.warm_start import nearest_network, wishes

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


@dataclass(frozen=True)
class BuiltInSpace:
    """What this package searches for an algorithm.

    Attributes:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        her: Whether the arguments of a `HerReplayBuffer` are searched too.
        given: Parameters that are settled, with the values they have.
    """

    algo: str
    her: bool = False
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"the built-in space of {space_name(self.algo)}"

    def sample(self, trial: Suggester) -> None:
        """Draws one point."""
        sample(self.algo, Settled(trial, dict(self.given)), her=self.her)

    def hyperparams(
        self, params: Mapping[str, Any], entry: Mapping[str, Any], custom: Mapping[str, Any] | None, n_envs: int | None
    ) -> dict[str, Any]:
        """Makes hyperparameters of what was drawn; see `convert`."""
        return convert(self.algo, params, entry, custom, n_envs)

    def distributions(self) -> dict[str, BaseDistribution] | None:
        """The distributions, or None where a bound depends on what was drawn before."""
        low, high = begin_probe(lowest), begin_probe(highest)
        self.sample(low)
        self.sample(high)
        return dict(low.distributions) if low.distributions == high.distributions else None

    def without(self, custom: Mapping[str, Any]) -> tuple[BuiltInSpace, tuple[str, ...]]:
        """Leaves out what given hyperparameters settle.

        Args:
            custom: The hyperparameters of the command line.

        Returns:
            The rest of the space, and the parameters that were left out.
        """
        probe = begin_probe(lowest)
        sample(self.algo, probe, her=self.her)
        settled = {name for name in probe.params if key_of(name) in custom}
        if "noise_type" in custom and custom["noise_type"] is None:
            settled |= {"noise_std"} & probe.params.keys()
        if "train_freq" in custom and to_number(custom["train_freq"]) is None:
            # Counted in episodes, it has no shares.
            settled |= {"subsample_steps"} & probe.params.keys()
        wished = wishes(self.algo, custom) if settled else {}
        given = tuple((name, wished.get(name)) for name in sorted(settled))
        return replace(self, given=given), tuple(sorted(settled))

    def towards(self, entry: Mapping[str, Any], n_envs: int | None) -> Draw:
        """Makes a draw that comes as near to a file's hyperparameters as the space allows."""
        wished = wishes(self.algo, entry, n_envs)
        plainly = nearest(wished)

        def draw(name: str, distribution: BaseDistribution) -> Any:
            choices: Sequence[Any] = getattr(distribution, "choices", ())
            return nearest_network(wished[name], choices) if name == "net_arch" else plainly(name, distribution)

        return draw

    def stated(self, entry: Mapping[str, Any], n_envs: int | None) -> Callable[[str], Any]:
        """Makes a look-up of what hyperparameters say themselves, in the words of the space where it has them."""
        # A schedule is more than where it starts.
        values = {**wishes(self.algo, entry, n_envs), **entry}

        def look(name: str) -> Any:
            value = values.get(name)
            if name != "net_arch" or value is None:
                return value
            return next((label for label, layers in NETWORKS.items() if list(layers) == list(value)), value)

        return look
