"""The algorithms by name: an open registry whose classes are imported at first use."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.classes import import_module, split_path
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.config.signatures import signature_of
from lit_sb3_ray.errors import unknown

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

INTERFACE = ("learn", "predict", "save", "load", "get_env", "get_vec_normalize_env", "set_logger")
"""The methods by which an algorithm is used; whatever class has them is one."""

CONSTRUCTOR = ("policy", "env", "seed", "verbose", "device")
"""The arguments that every algorithm is made with."""

BUILT_IN = {
    "a2c": "stable_baselines3:A2C",
    "ars": "sb3_contrib:ARS",
    "crossq": "sb3_contrib:CrossQ",
    "ddpg": "stable_baselines3:DDPG",
    "dqn": "stable_baselines3:DQN",
    "ppo": "stable_baselines3:PPO",
    "ppo_lstm": "sb3_contrib:RecurrentPPO",
    "ppo_mask": "sb3_contrib:MaskablePPO",
    "qrdqn": "sb3_contrib:QRDQN",
    "sac": "stable_baselines3:SAC",
    "td3": "stable_baselines3:TD3",
    "tqc": "sb3_contrib:TQC",
    "trpo": "sb3_contrib:TRPO",
}


class AlgorithmRegistry(MutableMapping[str, "type[BaseAlgorithm]"]):
    """A mapping from names to algorithm classes.

    Looking names up, counting and iterating import nothing; only taking a class does. New names are added by assignment, of
    a class or of a path: `ALGOS["mine"] = "package.module:Class"`.
    """

    def __init__(self, entries: dict[str, str]) -> None:
        self._entries: dict[str, str | type[Any]] = dict(entries)

    def __getitem__(self, name: str) -> type[BaseAlgorithm]:
        entry = self._entries[name]
        if isinstance(entry, str):
            entry = _import_algorithm(entry, f"algorithm {name!r}")
            self._entries[name] = entry
        return entry

    def __setitem__(self, name: str, algorithm: type[BaseAlgorithm] | str) -> None:
        if isinstance(algorithm, str):
            split_path(algorithm, "algorithm", f"algorithm {name!r}")
            self._entries[name] = algorithm
        else:
            self._entries[name] = _checked(algorithm, repr(algorithm), f"algorithm {name!r}")

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"AlgorithmRegistry({', '.join(sorted(self._entries))})"


ALGOS = AlgorithmRegistry(BUILT_IN)
"""All algorithms that the command line knows by name. Extend it by assignment."""


def resolve_algorithm(name: str) -> type[BaseAlgorithm]:
    """Finds an algorithm class by its name in `ALGOS` or by its path.

    Args:
        name: A key of `ALGOS`, or `package.module:Class` for any class with SB3's interface.

    Raises:
        ConfigError: No such name or class, or the class lacks a method of `INTERFACE` or an argument of `CONSTRUCTOR`.
        MissingPackageError: The class's package is not installed.
    """
    if name in ALGOS:
        return ALGOS[name]
    if ":" in name:
        return _import_algorithm(name, "--algo")
    if name.lower() == "her":
        raise problem(
            "'her' is a replay buffer, not an algorithm: take sac, td3, ddpg, dqn, qrdqn or tqc with "
            "replay_buffer_class: HerReplayBuffer",
            "--algo",
        )
    raise unknown("algorithm", name, ALGOS, "--algo")


def nearest_built_in(name: str) -> str | None:
    """Finds the built-in algorithm that an algorithm is or, through its classes, most closely descends from.

    Args:
        name: A key of `ALGOS`, or `package.module:Class`.

    Returns:
        The built-in's name; None when it descends from none.

    Raises:
        ConfigError: There is no such algorithm.
    """
    names = {path: built_in for built_in, path in BUILT_IN.items()}
    for cls in resolve_algorithm(name).__mro__:
        path = f"{cls.__module__.partition('.')[0]}:{cls.__name__}"
        if path in names:
            return names[path]
    return None


def is_stock(algorithm: type[Any]) -> bool:
    """Whether a class is Stable-Baselines3's or sb3-contrib's own, so that what it takes is known."""
    return algorithm.__module__.partition(".")[0] in ("stable_baselines3", "sb3_contrib")


def _import_algorithm(path: str, where: str) -> type[BaseAlgorithm]:
    module_name, attributes = split_path(path, "algorithm", where)
    target: Any = import_module(module_name, path, where)
    for attribute in attributes:
        if not hasattr(target, attribute):
            classes = [name for name, value in vars(target).items() if isinstance(value, type) and _lacking(value) == []]
            raise unknown(f"algorithm class in {module_name!r}:", attribute, classes, where)
        target = getattr(target, attribute)
    return _checked(target, repr(path), where)


def _checked(target: Any, shown: str, where: str) -> type[BaseAlgorithm]:
    if not isinstance(target, type):
        raise problem(f"{shown} is no algorithm class", where)
    lacking = _lacking(target)
    if lacking:
        raise problem(f"{shown} is no algorithm: it has no {', '.join(lacking)}", where)
    signature = signature_of(target)
    refused = [] if signature.is_open else [name for name in CONSTRUCTOR if name not in signature.parameters]
    if refused:
        raise problem(f"{shown} is no algorithm: its constructor does not take {', '.join(refused)}", where)
    algorithm: type[BaseAlgorithm] = target
    return algorithm


def _lacking(candidate: type) -> list[str]:
    return [method for method in INTERFACE if not callable(getattr(candidate, method, None))]
