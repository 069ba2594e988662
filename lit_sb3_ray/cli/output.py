"""How commands report: the level of the log, and one wording for a mean and its spread."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from tqdm import tqdm

Step = TypeVar("Step")

_LEVELS = {0: logging.WARNING, 1: logging.INFO}


class _BesideBar(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error, whatever that is at the moment; a bar or a table that is drawn there makes way."""

    @property
    def stream(self) -> TextIO:
        """Standard error; what draws there in place puts something of its own in front of it."""
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:
        """Keeps standard error, which the base class sets once."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(self.stream):
            super().emit(record)


def set_up_logging(verbose: int) -> None:
    """Sends the library's log to standard error, as much of it as asked for.

    Args:
        verbose: 0 warnings only, 1 what a user wants to follow, 2 and more everything.
    """
    logging.basicConfig(format="%(message)s", handlers=[_BesideBar()])
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


def with_bar(steps: Iterable[Step], total: int) -> Iterator[Step]:
    """Shows a bar on standard error while steps are taken; on a terminal, what is printed meanwhile stands above it.

    Args:
        steps: The steps.
        total: How many there will be.

    Yields:
        The steps.
    """
    from lit_sb3_ray.lit.printing import Redirection

    with tqdm(steps, total=total, unit="step", file=sys.stderr) as bar:
        printing = Redirection() if sys.stderr.isatty() else None
        try:
            yield from bar
        finally:
            bar.close()
            if printing is not None:
                printing.end()
