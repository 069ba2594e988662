"""Whether evaluation environments, which may have arguments of their own, suit what is trained in the others."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.fitting import shown


def check_same_form(training: VecEnv, evaluation: VecEnv) -> None:
    """Refuses evaluation environments in which a policy of the training ones cannot play.

    Args:
        training: The training environments.
        evaluation: The evaluation environments, with the same wrappers.

    Raises:
        ConfigError: An observation or an action of theirs has another form; bounds may differ.
    """
    for what in ("observation", "action"):
        trained: spaces.Space = getattr(training, f"{what}_space")  # type: ignore[type-arg]
        evaluated: spaces.Space = getattr(evaluation, f"{what}_space")  # type: ignore[type-arg]
        if not _same_form(trained, evaluated):
            told = f"{what}s of {shown(evaluated)}, and training environments of {shown(trained)}"
            raise ConfigError(f"--eval-env-kwargs: evaluation environments have {told}")


def _same_form(one: spaces.Space, other: spaces.Space) -> bool:  # type: ignore[type-arg]
    if isinstance(one, spaces.Dict) and isinstance(other, spaces.Dict):
        return one.keys() == other.keys() and all(_same_form(one[key], other[key]) for key in one)
    if isinstance(one, spaces.Box) and isinstance(other, spaces.Box):
        return one.shape == other.shape and np.can_cast(other.dtype, one.dtype, "same_kind")
    return one == other
