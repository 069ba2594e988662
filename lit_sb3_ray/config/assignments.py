"""`key:value` pairs of the command line (`--hyperparams`, `--env-kwargs`, `--eval-env-kwargs`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lit_sb3_ray.config.documents import parse_scalar, parse_yaml
from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import ConfigError

_CALL = re.compile(r"[A-Za-z_][\w.]*\s*\(")


def parse_assignments(tokens: Iterable[str], flag: str) -> dict[str, Any]:
    """Reads `key:value` pairs.

    A value is a YAML scalar or a list or mapping in brackets (`render_mode:rgb_array`, `use_sde:True`, `x:[1, 2]`,
    `d:{a: 1}`, `learning_rate:1e-3`, `x:None`); Python's tuples are understood too. Strings need no quotes, and quotes around
    one are taken off. Expressions such as `dict(net_arch=[64, 64])` stay strings, to be read where their place is known.

    Args:
        tokens: The pairs.
        flag: The flag they were given to, for messages.

    Returns:
        The values by key; of a key given twice, the last.

    Raises:
        ConfigError: A token is no pair, or its value cannot be read.
    """
    return dict(_pair(token, flag) for token in tokens)


def _pair(token: str, flag: str) -> tuple[str, Any]:
    key, colon, text = token.partition(":")
    key = key.strip()
    if not colon or not key:
        raise problem(f"expected key:value, not {token!r}", flag)
    return key, _value(text.strip(), f"value {text.strip()!r} of {key!r}, {flag}")


def _value(text: str, where: str) -> Any:
    if text in ("None", ""):
        return None
    if _CALL.match(text):
        return text
    if text.startswith("("):
        return parse_expression(text, where)
    if text[0] not in "[{'\"":
        return parse_scalar(text)
    try:
        value = parse_yaml(text, where)
    except ConfigError:
        if text[0] not in "[{":
            raise
        return parse_expression(text, where)
    return _with_spaces_in_mappings(value, where)


def _with_spaces_in_mappings(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            if item is None and isinstance(key, str) and ":" in key:
                raise problem(f"write a space after the colon: {{{key.replace(':', ': ')}}}", where)
    return value
