"""The words that `ent_coef` and `target_entropy` may be instead of numbers, where an algorithm learns its entropy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.problems import problem

AUTO = "auto"


def check_entropy(kwargs: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Checks both keys; where the algorithm takes numbers alone, no word has come as far as here.

    Args:
        kwargs: The constructor's hyperparameters with their types.
        places: Where each key was read from.

    Raises:
        ConfigError: One is a word that means nothing, or infinite.
    """
    target, coefficient = kwargs.get("target_entropy"), kwargs.get("ent_coef")
    if isinstance(target, str) and target != AUTO:
        raise problem(f"expected a number or {AUTO}, not {target!r}", f"target_entropy, {places['target_entropy']}")
    for key, value in (("target_entropy", target), ("ent_coef", coefficient)):
        if isinstance(value, float) and math.isinf(value):
            raise problem(f"expected a finite number, not {value!r}", f"{key}, {places[key]}")
    if isinstance(coefficient, str) and coefficient != AUTO and not _is_start(coefficient):
        text = f"expected a number, {AUTO}, or {AUTO}_ and the positive number to start with, not {coefficient!r}"
        raise problem(text, f"ent_coef, {places['ent_coef']}")


def _is_start(word: str) -> bool:
    begin, _, rest = word.partition("_")
    number = None if "_" in rest else to_number(rest)
    return begin == AUTO and number is not None and 0 < number < float("inf")
