"""The `policy` and `policy_kwargs` keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.signatures import coerce, signature_of
from lit_sb3_ray.errors import unknown

logger = logging.getLogger(__name__)

FILLED_IN = frozenset({"observation_space", "action_space", "lr_schedule", "use_sde"})
"""Arguments that the algorithm hands to its policy itself."""


def resolve_policy(value: Any, algorithm: type[Any], where: str) -> str | type[Any]:
    """Checks the policy against those that the algorithm knows.

    Args:
        value: A name (`MlpPolicy`), the dotted path of a policy class, or a class.
        algorithm: The algorithm's class.
        where: The key and the file or flag the value was read from.

    Returns:
        The name, for the algorithm to look up, or the class. Where the algorithm is recurrent, `MlpPolicy` is taken for
        `MlpLstmPolicy` with a warning, since rl_zoo3's default entry for ppo_lstm has it.

    Raises:
        ConfigError: The algorithm has no policy of that name, or the path leads to no policy.
    """
    if isinstance(value, str) and "." not in value and ":" not in value:
        aliases = getattr(algorithm, "policy_aliases", None)
        recurrent = value.replace("Policy", "LstmPolicy")
        if aliases and value not in aliases and recurrent in aliases:
            logger.warning("%s has no %s: taking %s (%s)", algorithm.__name__, value, recurrent, where)
            return recurrent
        if aliases and value not in aliases:
            raise unknown(f"{algorithm.__name__} policy", value, aliases, where)
        return value
    return resolve_class(value, ClassKind.POLICY, where)


def check_policy_kwargs(
    value: Mapping[str, Any] | None, policy: str | type[Any], algorithm: type[Any], where: str
) -> dict[str, Any] | None:
    """Checks the policy's arguments against its constructor, and finds the classes among them.

    Args:
        value: The arguments, their expressions read already.
        policy: What `resolve_policy` returned.
        algorithm: The algorithm's class.
        where: The key and the file or flag the value was read from.

    Returns:
        The arguments with classes in place of their names.

    Raises:
        ConfigError: The policy does not take an argument, or one is of the wrong type.
    """
    if value is None:
        return None
    cls = policy if isinstance(policy, type) else getattr(algorithm, "policy_aliases", {}).get(policy)
    if cls is None:
        return dict(value)
    signature = signature_of(cls)
    checked: dict[str, Any] = {}
    for name, item in value.items():
        if name in FILLED_IN and name in signature.parameters:
            raise problem(f"{name!r} is handed to the policy by the algorithm and cannot be set in policy_kwargs", where)
        parameter = signature.parameters.get(name)
        if parameter is None and not signature.is_open:
            raise unknown(f"{cls.__name__} argument", str(name), set(signature.parameters) - FILLED_IN, where)
        checked[name] = item if parameter is None else coerce(item, parameter.annotation, f"{name}, {where}")
    return checked
