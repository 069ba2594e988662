"""Brackets of successive halving: at which marks trials are compared, and which trial belongs to which bracket."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence


def first_rung(marks: Sequence[int], factor: int, bracket: int = 0) -> int:
    """Env steps before which a bracket ends no trial: a `factor` more from bracket to bracket."""
    return int(marks[0] * factor**bracket)


def rungs(marks: Sequence[int], factor: int, bracket: int = 0) -> tuple[int, ...]:
    """Finds the marks at which a bracket compares trials.

    Args:
        marks: Env steps of a trial's evaluations, the last of them its whole budget.
        factor: Each rung has so many times the env steps of the one before.
        bracket: How late the bracket starts to compare, from 0 up.

    Returns:
        The marks, ascending. The budget is none of them: there is nothing left to be saved.
    """
    found: list[int] = []
    rung = first_rung(marks, factor, bracket)
    while rung <= marks[-1] and (mark := marks[bisect_left(marks, rung)]) < marks[-1]:
        found.append(mark)
        rung *= factor
    return tuple(found)


def hyperband_shares(marks: Sequence[int], factor: int) -> tuple[int, ...]:
    """Says how the trials of a study are shared out among Hyperband's brackets.

    Args:
        marks: Env steps of a trial's evaluations.
        factor: The reduction factor.

    Returns:
        For each bracket, the earliest to compare first, its part of the trials, as whole numbers that relate to each other
        as the sizes in the Hyperband paper do: each bracket costs about the same.
    """
    count = 1
    while first_rung(marks, factor, count) <= marks[-1]:
        count += 1
    return tuple(-(-count * factor**depth // (depth + 1)) for depth in reversed(range(count)))


def turns(shares: Sequence[int], seed: int) -> tuple[int, ...]:
    """Arranges brackets in a cycle in which each comes up in its share, as evenly as possible.

    Args:
        shares: The brackets' shares.
        seed: Where in the cycle to begin.

    Returns:
        A bracket for each trial number; after the last begin again.
    """
    total = sum(shares)
    due = [0] * len(shares)
    order = []
    for _ in range(total):
        due = [waiting + share for waiting, share in zip(due, shares, strict=True)]
        bracket = due.index(max(due))
        due[bracket] -= total
        order.append(bracket)
    start = random.Random(seed).randrange(total)
    return (*order[start:], *order[:start])
