"""Errors that are the user's to mend, each told in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ConfigError(ValueError):
    """Bad input, told in one line; the command line prints it and exits with code 2."""


class NonFiniteError(RuntimeError):
    """Training has met NaN or infinity, and going on would only lose time; the command line prints it and exits with 1."""


class LearnerError(RuntimeError):
    """One of several learners of a run is lost, and the run with it; the command line prints it and exits with 1."""


class LearnerGoneError(LearnerError):
    """The connection to another learner is lost; what has become of it, that one or nobody knows."""


class StudyError(RuntimeError):
    """A study cannot be gone on with, since what keeps it fails; the command line prints it and exits with 1."""


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> ConfigError:
    """Builds the error for a name that is not among the known ones.

    Args:
        kind: What the name stands for, e.g. `"environment"`.
        name: The name as the user wrote it.
        known: The valid names.
        where: The file or flag the name came from, if any.

    Returns:
        The error, naming the nearest valid name or, when none is near, a few of them.
    """
    names = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(str(name).lower(), list(folded), n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {folded[near[0]]!r}?"
    elif len(names) <= 16:
        hint = f"known: {', '.join(names)}"
    else:
        hint = f"known are {len(names)} names, such as {', '.join(names[:3])}"
    place = f" ({where})" if where else ""
    return ConfigError(f"unknown {kind} {name!r}{place}: {hint}")
