"""Getting hold of the Hub, and telling in one line what it answers when something is wrong."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lit_sb3_ray import __version__
from lit_sb3_ray.config.problems import missing_package
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_LOG_IN = "log in with `hf auth login`, or give a token by HF_TOKEN or --token"


def connect(token: str | None = None) -> HfApi:
    """Makes a client of the Hub, whose progress bars are for terminals only; nothing is asked yet.

    Args:
        token: The user's access token; None for what the environment (HF_TOKEN) or a log-in says.

    Raises:
        ConfigError: The extra is not installed, or the token can be none.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise ConfigError(f"--token: no token is empty or has blanks, line ends or letters beyond ASCII in it; {_LOG_IN}")
    try:
        hub = importlib.import_module("huggingface_hub")
        utils = importlib.import_module("huggingface_hub.utils")
    except ImportError as error:
        raise missing_package("huggingface_hub", "the Hub") from error
    if not sys.stderr.isatty():
        utils.disable_progress_bars()
    api: HfApi = hub.HfApi(token=token, library_name="lit-sb3-ray", library_version=__version__)
    return api


@contextmanager
def telling(repo_id: str, action: str) -> Iterator[None]:
    """Turns what goes wrong with the Hub into one line.

    Args:
        repo_id: The repository.
        action: What is done with it, such as `download from`.

    Raises:
        ConfigError: In place of the client's own errors.
    """
    from huggingface_hub import errors

    # Whichever HTTP library the client has, its own error descends from that library's.
    network = next(base for base in errors.HfHubHTTPError.__mro__[1:] if issubclass(base, Exception))
    try:
        yield
    except ConfigError:
        raise
    except errors.GatedRepoError as error:
        raise ConfigError(f"cannot {action} {repo_id}: its owner lets in only whom they know; ask on its page") from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigError(
            f"cannot {action} {repo_id}: there is no such repository, or it is private and not open to you ({_LOG_IN})"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ConfigError(f"cannot {action} {repo_id}: it has no such revision") from error
    except errors.LocalTokenNotFoundError as error:
        raise ConfigError(f"cannot {action} {repo_id}: there is no token; {_LOG_IN}") from error
    except (OSError, RuntimeError, ValueError, network) as error:
        raise ConfigError(f"cannot {action} {repo_id}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    from huggingface_hub.errors import LocalEntryNotFoundError

    # The client speaks of its cache where the cause is that the Hub is out of reach.
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"the Hub refused it ({status}): this takes a token with the right to; {_LOG_IN}"
    # The client adds advice and request ids in further lines.
    lines = [line for line in str(error).splitlines() if line.strip()]
    told = " ".join(lines[0].split()) if lines else type(error).__name__
    # The client's HTTP library, whichever it is, names its error for a connection that cannot be made so.
    return f"the Hub cannot be reached: {told}" if type(error).__name__ in ("ConnectError", "ConnectionError") else told
