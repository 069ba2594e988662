"""Stable-Baselines3's models and normalisation statistics, read without running any of them.

A model's zip holds its weights (`*.pth`, which Stable-Baselines3 reads with `weights_only`), and `data`: JSON in which
whatever is no JSON stands as a pickle. Reading such a model runs what its maker wrote into it, unless every pickle is replaced
by an object, which Stable-Baselines3 calls custom objects. Here each is read with the list of classes and becomes one. Entries
that only training needs can be left unread: functions, such as schedules of older versions and of rl_zoo3, are stored as code.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.archives import open_archive
from lit_sb3_ray.untrusted.pickles import read_pickle
from lit_sb3_ray.untrusted.weights import check_weights

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecNormalize

MAX_DATA = 512 * 2**20
"""Bytes of `data`."""

_PICKLED = ":serialized:"


def read_custom_objects(path: Path | IO[bytes], unread: Mapping[str, Any]) -> dict[str, Any]:
    """Reads a model's pickled entries, for its algorithm's `load(custom_objects=...)`.

    Args:
        path: The model's `.zip`, or that file, open.
        unread: Entries that are not read, with what takes their place.

    Returns:
        All pickled entries, and those of `unread`; `load` then unpickles nothing.

    Raises:
        ConfigError: The file is no model, or holds something that is not on the list of classes, that would take the place
            of one of an algorithm's methods, or that would fill the memory.
    """
    from stable_baselines3.common.base_class import BaseAlgorithm

    entries = read_data(path)
    check_weights(path)
    for name in entries:
        if callable(getattr(BaseAlgorithm, name, None)):
            raise ConfigError(f"{path} was refused: its data would take the place of the algorithm's method {name}")
    objects = dict(unread)
    for name, entry in entries.items():
        if isinstance(entry, dict) and _PICKLED in entry and name not in unread:
            objects[name] = read_pickle(_decoded(entry[_PICKLED], path, name), f"{path} ({name})")
    return objects


def read_data(path: Path | IO[bytes]) -> dict[str, Any]:
    """Reads what a model tells of itself, in which whatever is no JSON stands as a pickle, unread.

    Args:
        path: The model's `.zip`, or that file, open.

    Returns:
        The entries by name.

    Raises:
        ConfigError: The file is no model.
    """
    with open_archive(path) as archive:
        if "data" not in archive.namelist() or archive.getinfo("data").file_size > MAX_DATA:
            raise ConfigError(f"{path} is no model of Stable-Baselines3: it has no data, or too much of it")
        content = archive.read("data")
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no model of Stable-Baselines3: its data is no JSON") from error
    if not isinstance(entries, dict):
        raise ConfigError(f"{path} is no model of Stable-Baselines3: its data is no mapping")
    return entries


def read_statistics(path: Path) -> VecNormalize:
    """Reads the statistics that VecNormalize has saved.

    Args:
        path: The `.pkl` file.

    Returns:
        The wrapper, without envs yet.

    Raises:
        ConfigError: The file is something else, or holds something that is not on the list of classes.
    """
    from stable_baselines3.common.vec_env import VecNormalize

    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"normalisation statistics {str(path)!r} cannot be read: {error.strerror or error}") from error
    loaded = read_pickle(content, str(path))
    if not isinstance(loaded, VecNormalize):
        raise ConfigError(f"{str(path)!r} holds no normalisation statistics of SB3 but a {type(loaded).__name__}")
    return loaded


def _decoded(text: object, path: object, name: str) -> bytes:
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except (binascii.Error, ValueError) as error:
        raise ConfigError(f"{path} is a damaged model: {name} in its data is no base64") from error
