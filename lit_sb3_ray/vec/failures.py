"""What can go wrong in a share of the environments, and how it is told."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass

import cloudpickle  # type: ignore[import-untyped]

from lit_sb3_ray.errors import ConfigError


class EnvError(RuntimeError):
    """An environment raised an exception.

    Attributes:
        index: Index of the environment; None when it cannot be told.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


class ActorError(RuntimeError):
    """The actor of some environments died or hung more often than `max_restarts` allows, or cannot be started."""


class PeerLost(Exception):  # noqa: N818 (it is caught and mended, and reaches nobody)
    """The process of a share of the environments is gone, or does not answer."""

    def __init__(self, cause: str, index: int | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.index = index


@dataclass(frozen=True)
class EnvFailure:
    """An exception of an environment, ready to travel between processes.

    Attributes:
        index: Index of the environment.
        doing: What the environment was doing, e.g. `"step"`.
        summary: The exception's type and message.
        details: The environment's own traceback.
        pickled: The exception itself, or None when it cannot be sent.
    """

    index: int
    doing: str
    summary: str
    details: str
    pickled: bytes | None

    @classmethod
    def of(cls, index: int, doing: str, error: Exception | SystemExit) -> EnvFailure:
        """Records an exception that was just caught; an environment's `sys.exit` is one, Ray's own goes on."""
        if hasattr(error, "ray_terminate_msg"):
            raise error
        pickled = None
        try:
            pickled = cloudpickle.dumps(error)
            pickle.loads(pickled)
        except Exception:  # an exception may have any reason not to be sendable; its text is sent then
            pickled = None
        return cls(
            index=index,
            doing=doing,
            summary="".join(traceback.format_exception_only(error)).strip(),
            details="".join(traceback.format_exception(error)),
            pickled=pickled,
        )

    def error(self) -> Exception:
        """Builds the error that ends the vectorised environment; the environment's exception is its cause.

        What an environment has found wrong with its settings as it was stepped is told as it is, in one line.
        """
        exception = self._exception()
        if self.doing == "step" and isinstance(exception, ConfigError):
            return exception
        error = EnvError(
            f"environment {self.index} failed in {self.doing}: {self.summary}\n\nIts own traceback:\n{self.details}",
            self.index,
        )
        error.__cause__ = exception
        return error

    def original(self) -> Exception:
        """Gives the environment's own exception, with its index and traceback as a note, or what stands for it."""
        exception = self._exception()
        if exception is None:
            return self.error()
        exception.add_note(f"raised by environment {self.index} in {self.doing}; its own traceback:\n{self.details}")
        return exception

    def _exception(self) -> Exception | None:
        if self.pickled is None:
            return None
        try:
            exception = pickle.loads(self.pickled)
        except Exception:  # its class may be missing here; its text is used then
            return None
        return exception if isinstance(exception, Exception) else None
