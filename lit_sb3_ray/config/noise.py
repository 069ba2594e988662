"""Action noise, as `noise_type` and `noise_std` describe it."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import unknown

if TYPE_CHECKING:
    from stable_baselines3.common.noise import ActionNoise

KINDS = ("normal", "ornstein-uhlenbeck")


@dataclass(frozen=True, slots=True)
class ActionNoiseSpec:
    """Noise around zero, the same on every dimension of a Box action space.

    Attributes:
        kind: `normal` or `ornstein-uhlenbeck`.
        std: Its standard deviation (`sigma`), in the units of the action.
    """

    kind: str
    std: float

    def build(self, n_actions: int) -> ActionNoise:
        """Builds the noise for an action space of `n_actions` dimensions."""
        import numpy as np
        from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

        noise = NormalActionNoise if self.kind == "normal" else OrnsteinUhlenbeckActionNoise
        return noise(mean=np.zeros(n_actions), sigma=self.std * np.ones(n_actions))


def take_noise(values: MutableMapping[str, Any], where: str) -> ActionNoiseSpec | None:
    """Removes `noise_type` and `noise_std` from the hyperparameters and reads them.

    Args:
        values: The hyperparameters; the two keys are popped.
        where: The file or flag they were read from.

    Returns:
        The noise, or None when there is to be none (`noise_type: null`).

    Raises:
        ConfigError: Unknown kind, or one key without the other, or a standard deviation below 0.
    """
    given = "noise_type" in values
    kind, std = values.pop("noise_type", None), values.pop("noise_std", None)
    if kind is None:
        if std is not None and not given:
            raise problem("noise_std needs a noise_type (normal or ornstein-uhlenbeck)", where)
        return None
    kind = str(kind).strip()
    if kind not in KINDS:
        raise unknown("noise_type", kind, KINDS, where)
    number = to_number(std)
    if number is None or not 0 <= number < float("inf"):
        raise problem(f"noise_type {kind!r} needs a noise_std, a number from 0 up, not {std!r}", where)
    return ActionNoiseSpec(kind, float(number))
