"""Which Ray a command works with, and what is shipped to its nodes. Nothing here needs Ray."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lit_sb3_ray.errors import ConfigError

LOCAL, AUTO = "local", "auto"
# What only a Ray of this process's own can be given, and its least values; Ray's store of objects has a least size.
_OWN = {"num_cpus": 0, "num_gpus": 0, "object_store_memory": 80_000_000}
_ARCHIVES = (".whl", ".zip")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class RaySettings:
    """How to get hold of Ray.

    Attributes:
        address: `host:port` of a running cluster's head; `auto` for one that is running, `local` for a Ray of its own in any
            case; empty for `RAY_ADDRESS`, then a cluster started on this machine, then a Ray of its own.
        num_cpus: CPUs that a Ray of its own has; None for those of this machine.
        num_gpus: GPUs that a Ray of its own has; None for those of this machine.
        object_store_memory: Bytes of its object store; None leaves that to Ray.
        dashboard: Whether a Ray of its own has a dashboard.
        py_modules: Folders of packages, modules (`.py`), wheels or URLs of archives, which every process of Ray can import.
        working_dir: A folder, or a URL of an archive, that Ray's processes on other nodes start in; empty for none.
        env_vars: Names and values of environment variables of Ray's processes.
    """

    address: str = ""
    num_cpus: int | None = None
    num_gpus: int | None = None
    object_store_memory: int | None = None
    dashboard: bool = False
    py_modules: tuple[str, ...] = ()
    working_dir: str = ""
    env_vars: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuses what can be seen to be wrong.

        Raises:
            ConfigError: An address of the wrong kind, a number below its least, or a path that is not there.
        """
        self._check_types()
        check_address(self.address, "--ray-address")
        for name, least in _OWN.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"--ray-{name.replace('_', '-')} {value}: at least {least:,}")
        for path in self.py_modules:
            _check_module(path)
        if self.working_dir and "://" not in self.working_dir and not os.path.isdir(self.working_dir):
            raise ConfigError(f"--working-dir {self.working_dir!r} is no folder")
        for name, _ in self.env_vars:
            if not _VARIABLE.fullmatch(name):
                raise ConfigError(f"--env-vars {name!r} is no name of an environment variable: give NAME=VALUE")
        if self.address not in ("", LOCAL):
            self.check_running(f"the cluster of --ray-address {self.address}")

    def _check_types(self) -> None:
        for name in ("address", "working_dir"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(f"{name} of Ray must be a string, not {getattr(self, name)!r}")
        for name in _OWN:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise ConfigError(f"{name} of Ray must be a whole number or None, not {value!r}")
        if not isinstance(self.py_modules, tuple) or not all(isinstance(path, str) for path in self.py_modules):
            raise ConfigError(f"py_modules of Ray must be a tuple of paths, not {self.py_modules!r}")
        pairs = self.env_vars if isinstance(self.env_vars, tuple) else (None,)
        if not all(
            isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(word, str) for word in pair) for pair in pairs
        ):
            raise ConfigError(f"env_vars of Ray must be a tuple of names and values, not {self.env_vars!r}")

    @property
    def own(self) -> dict[str, Any]:
        """What was asked for that only a Ray of this process's own can be given, by the names of `ray.init`."""
        given = {name: getattr(self, name) for name in _OWN if getattr(self, name) is not None}
        return {**given, "include_dashboard": True} if self.dashboard else given

    def check_running(self, where: str) -> None:
        """Refuses what a cluster that is running cannot be given.

        Args:
            where: Names the cluster, for the message.

        Raises:
            ConfigError: Something of that kind was asked for.
        """
        names = [*(name for name in _OWN if getattr(self, name) is not None), *(["dashboard"] if self.dashboard else [])]
        if names:
            flags = ", ".join(f"--ray-{name.replace('_', '-')}" for name in names)
            raise ConfigError(
                f"{flags}: {where} has what it was started with; leave that out, or start a Ray of its own by "
                f"--ray-address {LOCAL}"
            )

    def runtime_env(self) -> dict[str, Any]:
        """What `ray.init` takes as `runtime_env`; empty when nothing is shipped."""
        shipped: dict[str, Any] = {}
        if self.py_modules:
            shipped["py_modules"] = [path if "://" in path else os.path.abspath(path) for path in self.py_modules]
        if self.working_dir:
            shipped["working_dir"] = self.working_dir if "://" in self.working_dir else os.path.abspath(self.working_dir)
        if self.env_vars:
            shipped["env_vars"] = dict(self.env_vars)
        return shipped

    def make_importable(self) -> None:
        """Lets this process, too, import what is shipped: its folder goes to the end of `sys.path`."""
        for path in self.py_modules:
            folder = path if path.endswith(_ARCHIVES) else os.path.dirname(os.path.abspath(path))
            if "://" not in path and folder not in sys.path:
                sys.path.append(folder)


def check_address(address: str, source: str) -> None:
    """Refuses addresses that cannot be those of a cluster's head.

    Args:
        address: The address; empty, `auto` and `local` are right.
        source: Where it comes from, for the message.

    Raises:
        ConfigError: It is one of Ray Client's, of a dashboard's, or no `host:port`.
    """
    if address in ("", LOCAL, AUTO):
        return
    told = f"{source} {address!r}"
    if address.startswith("ray://"):
        raise ConfigError(
            f"{told}: Ray Client is not supported; run the command on the cluster by `ray job submit` or `ray submit`, or "
            "give host:port of its head (6379) from a node"
        )
    if address.startswith(("http://", "https://")):
        raise ConfigError(
            f"{told} is a dashboard's: that is for `ray job submit`; a cluster's head is host:port, such as :6379"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"{told} is neither host:port nor {AUTO} nor {LOCAL}")


def read_env_vars(words: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Reads `NAME=VALUE` words.

    Raises:
        ConfigError: One is none.
    """
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"--env-vars {word!r}: give NAME=VALUE")
        pairs[name] = value
    return tuple(pairs.items())


def _check_module(path: str) -> None:
    if "://" in path:
        return
    if not os.path.exists(path):
        raise ConfigError(f"--py-modules {path!r}: there is no such file or folder")
    if os.path.isfile(path) and not path.endswith((".py", *_ARCHIVES)):
        raise ConfigError(f"--py-modules {path!r} is neither a package's folder, a .py file nor a wheel")
