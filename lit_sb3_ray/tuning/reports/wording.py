"""How reports write values of any kind: one line, no longer than there is room for."""

from __future__ import annotations

from typing import Any


def cut(value: Any, width: int) -> str:
    """Writes a value in one line.

    Args:
        value: Anything; a float is written with six digits.
        width: The most characters it may take.

    Returns:
        The line, cut with an ellipsis; characters that cannot be printed are spaces.
    """
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    # Before the characters are looked at one by one, since a value may have millions of them.
    text = text[: 4 * width]
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def pairs(params: dict[str, Any], width: int) -> str:
    """Writes parameters as `name=value, ...`, no longer than `width`."""
    return cut(", ".join(f"{cut(name, 40)}={cut(value, 60)}" for name, value in params.items()), width)


def count(number: int, noun: str) -> str:
    """Writes a number of things: `1 trial`, `1,000 trials`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
