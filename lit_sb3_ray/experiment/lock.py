"""One training at a time in a run folder."""

from __future__ import annotations

import fcntl
import logging
import os
import weakref
from pathlib import Path

from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)

LOCK = ".lock"


class RunLock:
    """The right to write to a run folder, until it is released, forgotten, or the process ends in whatever way.

    The file stays: what counts is the system's lock on it, and a file that is removed could be locked twice.
    """

    def __init__(self, run: Path) -> None:
        """Takes the lock.

        Args:
            run: The run folder.

        Raises:
            ConfigError: Another process has it, or the file cannot be made.
        """
        try:
            descriptor = os.open(run / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ConfigError(f"{str(run)!r} cannot be written: {error.strerror}") from error
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            raise ConfigError(f"{str(run)!r} is being trained by another process: wait for it, or stop it") from None
        except OSError as error:
            logger.warning("%s cannot be locked (%s): see to it that nothing else trains there", run, error.strerror)

    def release(self) -> None:
        """Gives the lock back; once is enough."""
        if self._close.alive:
            try:
                # A forked child may hold a copy of the descriptor, which closing this one would leave locked.
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            except OSError as error:
                logger.warning("a run's lock cannot be given back: %s", error.strerror)
            self._close()
