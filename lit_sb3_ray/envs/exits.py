"""Environments that end their process: what calls `sys.exit` in a reset or a step has failed like any other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, SupportsFloat

from stable_baselines3.common.monitor import Monitor


class ExitError(RuntimeError):
    """Code of the user's has called `sys.exit` where that would end a training, perhaps as if all were well."""


@contextlib.contextmanager
def no_exit(what: str) -> Iterator[None]:
    """Turns `sys.exit` within into an error.

    Args:
        what: Whose code runs there, for the message.

    Raises:
        ExitError: In place of a `SystemExit`; its traceback tells where that came from.
    """
    try:
        yield
    except SystemExit as error:
        if is_of_ray(error):
            raise
        raise _exited(what, error) from error


class GuardedMonitor(Monitor):
    """SB3's Monitor, for which an environment that calls `sys.exit` has failed."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Resets the environment.

        Raises:
            ExitError: It has called `sys.exit`.
        """
        with no_exit("the environment's reset"):
            return super().reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps the environment.

        Raises:
            ExitError: It has called `sys.exit`.
        """
        # A context manager would take as long as many an environment's step.
        try:
            return super().step(action)
        except SystemExit as error:
            if is_of_ray(error):
                raise
            raise _exited("the environment's step", error) from error


def is_of_ray(error: SystemExit) -> bool:
    """Whether it is Ray that ends its worker."""
    return hasattr(error, "ray_terminate_msg")


def _exited(what: str, error: SystemExit) -> ExitError:
    return ExitError(f"{what} has called sys.exit({'' if error.code is None else repr(error.code)})")
