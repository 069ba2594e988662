"""The `normalize` key: running normalisation of observations and rewards by VecNormalize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.signatures import check_keywords, coerce, signature_of


def parse_normalize(value: Any, gamma: float | None, where: str) -> dict[str, Any] | None:
    """Reads the arguments for VecNormalize.

    Args:
        value: True, False, None, a mapping of VecNormalize's arguments, or such a mapping as a string.
        gamma: The algorithm's discount factor, which rewards are normalised with, if the configuration sets it.
        where: The key and the file or flag the value was read from.

    Returns:
        Keyword arguments for VecNormalize, in a new dict, or None when nothing is to be normalised.

    Raises:
        ConfigError: The value is none of these, or VecNormalize does not take one of the arguments.
    """
    if isinstance(value, str):
        flag = {"true": True, "false": False}.get(value.strip().lower())
        value = parse_expression(value, where) if flag is None else flag
    if value is None or value is False:
        return None
    if value is True:
        value = {}
    if not isinstance(value, Mapping):
        raise problem(f"expected true, false or VecNormalize's arguments, not {value!r}", where)
    from stable_baselines3.common.vec_env import VecNormalize

    check_keywords(VecNormalize, value, {"venv", "training"}, where)
    parameters = signature_of(VecNormalize).parameters
    kwargs = {name: coerce(item, parameters[name].annotation, f"{name}, {where}") for name, item in value.items()}
    if gamma is not None:
        kwargs["gamma"] = gamma
    return kwargs
