"""A study whose storage or disk fails while it runs: told in one line, since all that was kept until then is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lit_sb3_ray.errors import StudyError
from lit_sb3_ray.tuning.rows import one_line


@contextmanager
def kept(study_name: str) -> Iterator[None]:
    """Turns what goes wrong with a study's storage, or with the disk, into one line.

    Args:
        study_name: The study's name.

    Raises:
        StudyError: The storage cannot be read or written, or the disk is full.
    """
    try:
        yield
    except Exception as error:  # Tune hides what its callbacks raise in an error of its own.
        fault = _fault(error)
        if fault is None:
            raise
        told = f"study {study_name!r} cannot be kept any more: {one_line(fault)}"
        raise StudyError(f"{told}; what was kept is whole: mend that, and go on with --resume") from error


def _fault(error: BaseException | None) -> BaseException | None:
    """Finds what Tune has wrapped; None where that is no fault of a storage or a disk."""
    from optuna.exceptions import OptunaError
    from ray.tune.error import TuneError
    from sqlalchemy.exc import SQLAlchemyError

    while isinstance(error, TuneError):
        error = error.__context__
    return error if isinstance(error, OptunaError | SQLAlchemyError | OSError) else None
