"""How commands report: the level of the log, and one wording for a mean and its spread."""

from __future__ import annotations

import logging

_LEVELS = {0: logging.WARNING, 1: logging.INFO}


def set_up_logging(verbose: int) -> None:
    """Sends the library's log to standard error, as much of it as asked for.

    Args:
        verbose: 0 warnings only, 1 what a user wants to follow, 2 and more everything.
    """
    logging.basicConfig(format="%(message)s")
    logging.getLogger("lit_sb3_ray").setLevel(_LEVELS.get(max(verbose, 0), logging.DEBUG))


def spread(mean: float, std: float) -> str:
    """Writes a mean and a standard deviation.

    Args:
        mean: The mean.
        std: The standard deviation.

    Returns:
        Such as `195.20 +/- 3.10`.
    """
    return f"{mean:.2f} +/- {std:.2f}"
