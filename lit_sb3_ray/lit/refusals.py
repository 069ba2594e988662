"""What SB3's constructors and loading functions raise for bad input, told as this package tells it."""

from __future__ import annotations

import logging
import pickle
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)

REFUSALS = (
    *(AssertionError, AttributeError, EOFError, ImportError, LookupError, MemoryError, OSError, RuntimeError, TypeError),
    *(ValueError, pickle.PickleError, zipfile.BadZipFile, zlib.error),
)
# How Python writes a class; its own name is enough.
_CLASS = re.compile(r"<class '(?:[\w.]+\.)?(\w+)'>")
_TELLING = (AssertionError, ImportError, OSError, RuntimeError, ValueError, zipfile.BadZipFile)


@contextmanager
def refusing(problem: str) -> Iterator[None]:
    """Turns what SB3 raises within into one line.

    Args:
        problem: What has gone wrong then, such as `x.zip cannot be loaded`; the reason is added.

    Raises:
        ConfigError: In place of any of `REFUSALS`.
    """
    try:
        yield
    except ConfigError:
        raise
    except REFUSALS as error:
        logger.debug("%s", problem, exc_info=True)
        raise ConfigError(f"{problem}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """An error in one line, with its name where its text alone says little, such as a missing key's."""
    text, name = _CLASS.sub(r"\1", " ".join(str(error).split())), type(error).__name__
    if not text:
        return name
    return text if isinstance(error, _TELLING) else f"{name}: {text}"
