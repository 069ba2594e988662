"""Hyperparameter files: the packaged ones, YAML files, Python files and modules."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from lit_sb3_ray.config.algorithms import BUILT_IN, nearest_built_in
from lit_sb3_ray.config.classes import failed_import, import_module
from lit_sb3_ray.config.documents import parse_yaml, read_text
from lit_sb3_ray.config.plain import copy_containers
from lit_sb3_ray.config.problems import MissingPackageError, problem, reason

logger = logging.getLogger(__name__)

PACKAGED = "lit_sb3_ray.hyperparams"
VARIABLE = "hyperparams"


@dataclass(frozen=True)
class ConfigFile:
    """The entries of one hyperparameter file.

    Attributes:
        label: How messages name the file.
        entries: Hyperparameters by environment id, `atari` or `default`. They belong to the reader: nobody else holds them.
    """

    label: str
    entries: dict[str, dict[str, Any]]


def read_entries(source: str | None, algo: str) -> ConfigFile:
    """Reads a hyperparameter file.

    Args:
        source: A `.yml` or `.yaml` file, a `.py` file or an importable module holding a dict named `hyperparams`; None for the
            packaged file of the algorithm, or of the one that it descends from.
        algo: The algorithm's name, which chooses the packaged file.

    Raises:
        ConfigError: There is no such file or module, it cannot be read, or its content is not entries by environment.
    """
    label, content = _packaged(algo) if source is None else _given(source)
    return ConfigFile(label, _entries(content, label))


def _packaged(algo: str) -> tuple[str, Any]:
    name = algo if algo in BUILT_IN else nearest_built_in(algo)
    if name is None:
        raise problem(
            f"algorithm {algo!r} has no packaged hyperparameters, nor has a class it descends from: "
            "name a file with --conf-file",
            "",
        )
    label = f"hyperparams/{name}.yml"
    if name != algo:
        logger.info("%s descends from %s: taking its hyperparameters (%s); --conf-file names others", algo, name, label)
    return label, parse_yaml((_packaged_folder() / f"{name}.yml").read_text(encoding="utf-8"), label)


def _packaged_folder() -> Any:
    try:
        return files(PACKAGED)
    except ModuleNotFoundError:
        # A bare checkout, not installed: the folder lies beside the package.
        return Path(__file__).parents[2] / "hyperparams"


def _given(source: str) -> tuple[str, Any]:
    path = Path(source)
    if path.suffix in (".yml", ".yaml"):
        return source, parse_yaml(read_text(path), source)
    if path.suffix == ".py":
        return source, _variable(_load_python(path), source)
    if not all(part.isidentifier() for part in source.split(".")):
        raise problem(f"expected a .yml, .yaml or .py file or the name of a module, not {source!r}", "--conf-file")
    try:
        module = import_module(source, source, "--conf-file")
    except MissingPackageError as error:
        if error.package != source.split(".")[0]:
            raise
        raise problem(f"there is no file and no module {source!r}", "--conf-file") from error
    return source, _variable(module, source)


class _UncachedLoader(SourceFileLoader):
    """Runs a Python file without leaving bytecode beside it, so that an edited file is never taken for its cached self."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Writes nothing."""


def _load_python(path: Path) -> ModuleType:
    if not path.is_file():
        raise problem(f"there is no file {str(path)!r}", "")
    name = f"lit_sb3_ray_config_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_UncachedLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise problem(f"{str(path)!r} cannot be loaded as Python", "")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up. It is not left there: what the file defines is sent to other processes by value.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise problem(f"not valid Python: {error.msg}, line {error.lineno}", str(path)) from error
    except ImportError as error:
        raise failed_import(error, path.name, str(path)) from error
    except (Exception, SystemExit) as error:  # The user's code runs here: whatever it raises says what is wrong with it.
        raise problem(f"it cannot be run: {reason(error)}", str(path)) from error
    finally:
        sys.modules.pop(name, None)
    return module


def _variable(module: ModuleType, label: str) -> Any:
    if not hasattr(module, VARIABLE):
        raise problem(f"it defines no variable {VARIABLE!r}", label)
    return getattr(module, VARIABLE)


def _entries(content: Any, label: str) -> dict[str, dict[str, Any]]:
    if not isinstance(content, Mapping) or not content:
        raise problem(f"expected entries by environment id, not {_kind(content)}", label)
    for key, entry in content.items():
        if not isinstance(entry, Mapping):
            raise problem(f"expected a mapping of hyperparameters under {key!r}, not {_kind(entry)}", label)
        if "model_class" in entry:
            raise problem(
                f"entry {key!r} has a model_class, as her.yml does: HER is a replay buffer, not an algorithm; write the entry "
                "into the file of sac, td3, ddpg, dqn or tqc with replay_buffer_class: HerReplayBuffer",
                label,
            )
    return {str(key): copy_containers(entry) for key, entry in content.items()}


def _kind(content: Any) -> str:
    return "an empty file" if content is None or content == {} else f"{type(content).__name__} {str(content)[:40]!r}"
