"""Classes named by dotted paths: imported, checked to be of the expected kind, and never called."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from enum import Enum
from types import ModuleType
from typing import Any

from lit_sb3_ray.config.peer_names import CLASSES, MODULES, REFUSED
from lit_sb3_ray.config.problems import missing_package, problem, reason
from lit_sb3_ray.errors import ConfigError, unknown


class ClassKind(Enum):
    """What a class must descend from to be taken at a given place: a label for messages, and the accepted bases."""

    ENV_WRAPPER = ("environment wrapper", "gymnasium:Wrapper")
    VEC_ENV_WRAPPER = ("VecEnv wrapper", "stable_baselines3.common.vec_env:VecEnvWrapper")
    CALLBACK = ("callback", "stable_baselines3.common.callbacks:BaseCallback")
    POLICY = ("policy", "stable_baselines3.common.policies:BasePolicy")
    BUFFER = ("buffer", "stable_baselines3.common.buffers:BaseBuffer")
    MODULE = ("torch module", "torch.nn:Module")
    OPTIMIZER = ("optimizer", "torch.optim:Optimizer")
    VALUE = (
        "torch module, optimizer or buffer",
        "torch.nn:Module",
        "torch.optim:Optimizer",
        "stable_baselines3.common.buffers:BaseBuffer",
    )

    @property
    def label(self) -> str:
        """The kind in words."""
        label: str = self.value[0]
        return label

    @property
    def bases(self) -> tuple[type, ...]:
        """The classes of which a class of this kind is a subclass; importing them is left to this moment."""
        pairs = (path.split(":") for path in self.value[1:])
        return tuple(getattr(importlib.import_module(module), name) for module, name in pairs)


def resolve_class(path: str | type, kind: ClassKind, where: str) -> type[Any]:
    """Finds the class behind a path and checks that it is of the expected kind.

    Args:
        path: `pkg.mod.Class`, `pkg.mod:Class`, or a class already (Python configuration files have them).
        kind: What the class must be.
        where: The key and the file or flag the path was read from.

    Returns:
        The class. Its module was imported; nothing in it was called.

    Raises:
        ConfigError: The path leads nowhere, or to something of another kind.
        MissingPackageError: The path's package, or one that it imports, is not installed.
    """
    if isinstance(path, type):
        return _checked(path, path.__qualname__, kind, where)
    if not isinstance(path, str):
        raise problem(f"expected a dotted path such as 'package.module.Class' ({kind.label}), not {path!r}", where)
    module_name, attributes = split_path(path.strip(), kind.label, where)
    target: Any = import_module(module_name, path, where)
    for attribute in attributes:
        try:
            target = getattr(target, attribute)
        except ImportError as error:  # Modules may import their members late.
            raise failed_import(error, path, where) from error
        except AttributeError as error:
            raise _no_class(path, attribute, target, kind, where) from error
    return _checked(target, path, kind, where)


def split_path(path: str, label: str, where: str) -> tuple[str, list[str]]:
    """Splits a path into the module to import and the attributes to follow, with what has moved put right.

    Raises:
        ConfigError: The text is no path of identifiers, or names a part of rl_zoo3 that has no counterpart here.
    """
    path = CLASSES.get(path, path)
    module_name, separator, rest = path.partition(":")
    if not separator:
        module_name, separator, rest = path.rpartition(".")
    attributes = rest.split(".")
    if not separator or not all(part.isidentifier() for part in [*module_name.split("."), *attributes]):
        raise problem(f"expected a dotted path such as 'package.module.Class' ({label}), not {path!r}", where)
    if any(part.startswith("_") for part in attributes):
        raise problem(f"{path!r} names something private", where)
    if path in REFUSED:
        raise problem(f"{path!r} has no counterpart here: {REFUSED[path]}", where)
    if module_name.split(".")[0] == "rl_zoo3" and module_name not in MODULES:
        known = " and ".join(f"{name}.*" for name in MODULES if name.startswith("rl_zoo3"))
        raise problem(f"{path!r} has no counterpart in this project; of rl_zoo3, {known} are understood", where)
    return MODULES.get(module_name, module_name), attributes


def import_module(name: str, needed_for: str, where: str) -> ModuleType:
    """Imports a module that the user named.

    Args:
        name: The module's dotted name.
        needed_for: What the user wrote, for the message.
        where: The key and the file or flag it was read from.

    Raises:
        ConfigError: There is no such module, or it fails as it is imported.
        MissingPackageError: Its package, or one that it imports, is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing, top = error.name or name, name.split(".")[0]
        if missing != top and missing.split(".")[0] == top:
            raise _no_module(missing, needed_for, where) from error
        raise failed_import(error, needed_for, where) from error
    except ImportError as error:
        raise failed_import(error, needed_for, where) from error
    except (Exception, SystemExit) as error:  # The user's code runs here: whatever it raises says what is wrong with it.
        raise problem(f"{needed_for!r} cannot be imported: {reason(error)}", where) from error


def failed_import(error: ImportError, needed_for: str, where: str) -> ConfigError:
    """Builds the error for an import that failed: a missing package with its extra, or the reason that Python gives."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return missing_package(error.name.split(".")[0], repr(needed_for), where)
    return problem(f"{needed_for!r} cannot be imported: {_one_line(error)}", where)


def _no_module(missing: str, needed_for: str, where: str) -> ConfigError:
    parent, _, _ = missing.rpartition(".")
    folders = getattr(importlib.import_module(parent), "__path__", ())
    siblings = [f"{parent}.{entry.name}" for entry in pkgutil.iter_modules(folders)]
    return unknown(f"module (in {needed_for!r})", missing, siblings, where)


def _no_class(path: str, attribute: str, owner: Any, kind: ClassKind, where: str) -> ConfigError:
    bases = kind.bases
    members = getattr(owner, "__dict__", {})
    found = {name for name, member in members.items() if isinstance(member, type) and issubclass(member, bases)}
    # Names that a module only promises are taken at their word: having them would import more, which may fail.
    promised = set(getattr(owner, "__all__", ())) - set(members)
    prefix = path.strip().removesuffix(attribute)
    near = [f"{prefix}{name}" for name in found | promised]
    if not near:
        return problem(f"{path!r} leads nowhere: there is no {kind.label} in {prefix.rstrip('.:')!r}", where)
    return unknown(kind.label, path, near, where)


def _checked(target: Any, path: str, kind: ClassKind, where: str) -> type[Any]:
    if not isinstance(target, type):
        raise problem(f"{path!r} is no {kind.label} class but {_one_line(repr(target))}", where)
    if not issubclass(target, kind.bases):
        raise problem(f"{path!r} is no {kind.label}: it does not descend from {' or '.join(_base_names(kind))}", where)
    if inspect.isabstract(target):
        lacking = ", ".join(sorted(getattr(target, "__abstractmethods__", ())))
        raise problem(f"{path!r} is an abstract {kind.label}, without {lacking}: name a class that descends from it", where)
    return target


def _base_names(kind: ClassKind) -> list[str]:
    return [path.rpartition(":")[2] for path in kind.value[1:]]


def _one_line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= 120 else f"{line[:117]}..."
