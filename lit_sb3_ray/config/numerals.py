"""Numbers as configuration files write them, which is not always how YAML reads them (`1e-3` is a string to YAML 1.1)."""

from __future__ import annotations

import re
from numbers import Integral, Real

_NUMERAL = re.compile(r"[-+]?(\d[\d_]*)?\.?\d[\d_]*\.?([eE][-+]?\d+)?|[-+]?\.?(inf|nan)", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?\d+(_\d+)*")


def to_number(value: object) -> int | float | None:
    """Gives a value as a plain number.

    Args:
        value: Anything; numbers of numpy and strings such as `"1e-3"`, `"1_000"` or `".inf"` count as numbers.

    Returns:
        The int or float, or None when the value is no number (booleans are none).
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, str):
        return _from_text(value.strip())
    return None


def _from_text(text: str) -> int | float | None:
    if len(text) > 64 or not _NUMERAL.fullmatch(text):
        return None
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    except ValueError:
        return None
