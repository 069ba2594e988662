"""Whether a run was trained here or came from the Hub: `<E>/hub.yml` says so, and whether its files may be run as code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.experiment.run_folder import write_yaml

ORIGIN = "hub.yml"
"""Written beside the settings of a run that was downloaded."""
FROM_HUB = "env_kwargs.yml"
"""rl_zoo3 writes this one beside the settings of runs that it has downloaded, and of no others."""


@dataclass(frozen=True)
class Origin:
    """Where a downloaded run came from.

    Attributes:
        repo_id: The repository, `<organization>/<name>`.
        revision: Its commit.
        trusted: Whether whoever downloaded it trusts its maker, so that its pickles are read without restriction.
    """

    repo_id: str
    revision: str
    trusted: bool


def write_origin(settings: Path, origin: Origin) -> None:
    """Notes where a run came from.

    Args:
        settings: The run's sub-folder with its settings.
        origin: The note.
    """
    write_yaml(settings / ORIGIN, asdict(origin))


def is_trusted(settings: Path) -> bool:
    """Tells whether a run's files may be read as any pickle is, which runs what is in them.

    Args:
        settings: The run's sub-folder with its settings.

    Returns:
        False for what was downloaded, by this package or rl_zoo3, but for what was downloaded with `--trust`.

    Raises:
        ConfigError: The note on its origin is damaged.
    """
    if (settings / ORIGIN).exists():
        content = read_yaml(settings / ORIGIN)
        return isinstance(content, dict) and content.get("trusted") is True
    return not (settings / FROM_HUB).exists()


def is_trusted_model(model: str | Path) -> bool:
    """Tells the same of a model's file by the folder it lies in, whatever environment it is for."""
    return all(is_trusted(folder) for folder in Path(model).parent.iterdir() if folder.is_dir())
