"""The `policy` and `policy_kwargs` keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.signatures import Signature, check_keywords, coerce, signature_of
from lit_sb3_ray.errors import unknown

logger = logging.getLogger(__name__)

FILLED_IN = frozenset({"observation_space", "action_space", "lr_schedule", "use_sde"})
"""Arguments that the algorithm hands to its policy itself."""


MAX_LAYER = 2**20
"""Units of the widest layer that is let pass."""


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
    _check_layers(checked.get("net_arch"), f"net_arch, {where}")
    if isinstance(checked.get("activation_fn"), type):
        check_keywords(checked["activation_fn"], {}, (), f"activation_fn, {where}")
    _check_optimizer(checked, algorithm, signature, where)
    return checked


def _check_layers(layers: Any, where: str) -> None:
    """Refuses sizes that no layer has, in a list or in one list for each network; what else a policy takes is its own."""
    if not isinstance(layers, Mapping | list | tuple):
        return
    for part in layers.values() if isinstance(layers, Mapping) else layers:
        if isinstance(part, Mapping | list | tuple):
            _check_layers(part, where)
        elif not isinstance(part, Integral) or isinstance(part, bool) or not 1 <= int(part) <= MAX_LAYER:
            raise problem(f"expected layers of 1 to {MAX_LAYER} units, not {part!r}", where)


def _check_optimizer(kwargs: Mapping[str, Any], algorithm: type[Any], signature: Signature, where: str) -> None:
    """Checks the optimizer's arguments against the given class, or else the policy's own."""
    default = signature.parameters.get("optimizer_class")
    cls = kwargs.get("optimizer_class", default.default if default else None)
    # A2C puts an optimizer of its own, and arguments for it, in the place of the policy's default.
    replaced = "optimizer_class" not in kwargs and "use_rms_prop" in signature_of(algorithm).parameters
    if isinstance(kwargs.get("optimizer_kwargs"), Mapping) and isinstance(cls, type) and not replaced:
        check_keywords(cls, kwargs["optimizer_kwargs"], {"params", "lr"}, f"optimizer_kwargs, {where}")
