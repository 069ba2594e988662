"""The ranges of numbers that the algorithms take without a word but make nothing of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.problems import problem

MAX_SEED = 2**32 - 1
"""The largest seed that NumPy takes."""
MAX_THREADS = 1024
"""CPU threads for PyTorch; for many more than there are CPUs, the library behind it ends the process without a word."""
MAX_FLOAT = (2 - 2**-23) * 2.0**127
"""The largest number that torch's floats of 32 bits hold."""


@dataclass(frozen=True)
class Range:
    """Numbers from a least to a largest one, both included but where said.

    Attributes:
        low: The least.
        high: The largest.
        above: Whether `low` itself is left out.
    """

    low: float
    high: float = math.inf
    above: bool = False

    def __contains__(self, number: float) -> bool:
        return (number > self.low if self.above else number >= self.low) and number <= self.high

    def __str__(self) -> str:
        start = f"above {self.low:g}" if self.above else f"from {self.low:g}"
        return f"{start} up" if math.isinf(self.high) else f"{start} to {self.high:g}"


SHARE, COUNT, POSITIVE, NOT_NEGATIVE = Range(0, 1), Range(1), Range(0, above=True), Range(0)
RANGES: dict[str, Range] = {
    "cg_damping": NOT_NEGATIVE,
    "cg_max_steps": COUNT,
    "clip_range": POSITIVE,
    "delta_std": POSITIVE,
    "exploration_final_eps": SHARE,
    "exploration_fraction": SHARE,
    "exploration_initial_eps": SHARE,
    "gae_lambda": SHARE,
    "gamma": SHARE,
    "gradient_steps": Range(-1),
    "learning_rate": NOT_NEGATIVE,
    "line_search_max_iter": COUNT,
    "max_grad_norm": NOT_NEGATIVE,
    "n_critic_updates": COUNT,
    "rms_prop_eps": NOT_NEGATIVE,
    "stats_window_size": COUNT,
    "sub_sampling_factor": COUNT,
    "target_kl": POSITIVE,
    "target_policy_noise": NOT_NEGATIVE,
    "target_update_interval": COUNT,
    "tau": SHARE,
    "top_quantiles_to_drop_per_net": NOT_NEGATIVE,
}
"""By hyperparameter; the meaning of each is Stable-Baselines3's. A schedule that is no plain number is not looked into."""
POLICY_RANGES: dict[str, Range] = {"lstm_hidden_size": COUNT, "n_critics": COUNT, "n_lstm_layers": COUNT, "n_quantiles": COUNT}
"""By argument of the policy."""
# What TQC's policy has where nothing is said.
N_QUANTILES = 25


def check_ranges(values: Mapping[str, Any], kwargs: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Checks numbers against the ranges that their meaning has.

    Args:
        values: The constructor's hyperparameters as they were written.
        kwargs: The same with their types; `policy_kwargs` is looked into.
        places: Where each key was read from.

    Raises:
        ConfigError: One is outside of its range.
    """
    for key, value in values.items():
        _check(key, value, RANGES, places.get(key, ""))
    policy = kwargs.get("policy_kwargs") or {}
    for key, value in policy.items():
        _check(key, value, POLICY_RANGES, places.get("policy_kwargs", ""))
    dropped, quantiles = kwargs.get("top_quantiles_to_drop_per_net"), policy.get("n_quantiles", N_QUANTILES)
    if isinstance(dropped, int) and isinstance(quantiles, int) and dropped >= quantiles:
        where = f"top_quantiles_to_drop_per_net, {places['top_quantiles_to_drop_per_net']}"
        raise problem(f"expected fewer than the {quantiles} quantiles of a critic, not {dropped}", where)


def _check(key: str, value: Any, ranges: Mapping[str, Range], place: str) -> None:
    number = to_number(value)
    if number is not None and MAX_FLOAT < abs(number) < math.inf:
        raise problem(f"expected a number that torch can hold, up to {MAX_FLOAT:.2g}, not {value!r}", f"{key}, {place}")
    if key in ranges and number is not None and number not in ranges[key]:
        raise problem(f"expected a number {ranges[key]}, not {value!r}", f"{key}, {place}")
