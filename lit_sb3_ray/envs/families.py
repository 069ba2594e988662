"""Families of environments: which package registers an id, which extra installs it, and what an id belongs to."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from lit_sb3_ray.config.problems import reason
from lit_sb3_ray.envs.novel import NOVEL_IDS, register_novel_envs
from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec as GymSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Family:
    """Environments that come from one package outside gymnasium.

    Attributes:
        module: Module that must be there; for `ids`, importing it registers them.
        ids: Pattern of the ids that tell the family, searched for at the start of an id; empty for ids of gymnasium's own.
        entry: Part of the entry point of a registered id of the family.
        install: What to do when the module is missing.
    """

    module: str
    ids: str
    entry: str
    install: str


def _extra(name: str) -> str:
    return f"pip install 'lit-sb3-ray[{name}]'"


FAMILIES = (
    Family("Box2D", "", "gymnasium.envs.box2d", _extra("box2d")),
    Family("mujoco", "", "gymnasium.envs.mujoco", _extra("mujoco")),
    Family("ale_py", r"ALE/|\w+(NoFrameskip|Deterministic|-ram)-v\d", "AtariEnv", _extra("atari")),
    Family("minigrid", r"MiniGrid-|BabyAI-", "minigrid", _extra("minigrid")),
    Family("pybullet_envs_gymnasium", r"\w+Bullet\w*Env-v\d|Minitaur", "pybullet_envs", _extra("bullet")),
    Family(
        "highway_env",
        r"(highway|parking|merge|exit|intersection|racetrack|roundabout|lane-keeping|two-way|u-turn)-",
        "highway_env",
        _extra("highway"),
    ),
    Family("panda_gym", r"Panda[A-Z]", "panda_gym.envs", _extra("panda")),
    Family(
        "gymnasium_robotics",
        r"Fetch[A-Z]|Hand(Reach|Manipulate)|AdroitHand|AntMaze|PointMaze|FrankaKitchen",
        "gymnasium_robotics",
        _extra("robotics"),
    ),
    Family("custom_envs", r"A1(Walking|Jumping)-|Neck(Goal)?Env", "custom_envs", "it is private to its authors"),
    Family("gym_donkeycar", r"donkey-", "gym_donkeycar", "see the donkeycar simulator's own instructions"),
    Family("rocket_lander_gym", r"RocketLander-", "rocket_lander_gym", "it is installed from its own repository"),
)


def entry_point(env_id: str) -> str:
    """Returns the entry point under which an environment is registered, registering it first if need be.

    Args:
        env_id: The environment's id.

    Returns:
        `"module:Class"`, or the text of a callable.

    Raises:
        ConfigError: The id is unknown, or its package is missing; see `register_env`.
    """
    if env_id not in gym.registry:
        register_env(env_id)
    return str(gym.registry[env_id].entry_point)


def is_atari(env_id: str) -> bool:
    """Tells whether an id is an Atari game, for which configurations have the entry `atari`."""
    return "AtariEnv" in entry_point(env_id)


def is_minigrid(env_id: str) -> bool:
    """Tells whether an id is a MiniGrid (or BabyAI) task."""
    return "minigrid" in entry_point(env_id)


def is_bullet(env_id: str) -> bool:
    """Tells whether an id is a PyBullet task."""
    return "pybullet_envs" in entry_point(env_id)


def is_panda_gym(env_id: str) -> bool:
    """Tells whether an id is a Panda arm task."""
    return "panda_gym.envs" in entry_point(env_id)


def is_robotics_env(env_id: str) -> bool:
    """Tells whether an id is a robotics task: of gymnasium-robotics, its predecessor in gym, or panda-gym."""
    point = entry_point(env_id)
    return any(part in point for part in ("gymnasium_robotics", "gym.envs.robotics", "panda_gym.envs"))


def reports_success(env_id: str) -> bool:
    """Tells whether an id is known to put `is_success` into the info of every step.

    Of gymnasium-robotics only the Fetch arm and the shadow hand do; its mazes and Adroit hands call it `success`, and
    the monitor stops at a key that is not there.
    """
    point = entry_point(env_id)
    goals = ("gymnasium_robotics.envs.fetch", "gymnasium_robotics.envs.shadow_dexterous_hand", "gym.envs.robotics")
    parking = "highway_env" in point and env_id.startswith("parking-")
    return parking or "parking-v0" in env_id or any(part in point for part in (*goals, "panda_gym.envs"))


def monitor_defaults(env_id: str, monitor_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Completes the monitor's arguments: tasks with a goal also log whether it was reached.

    Args:
        env_id: The environment's id.
        monitor_kwargs: The configuration's `monitor_kwargs`; its own `info_keywords` are kept.

    Returns:
        A new dict for `EnvSpec.monitor_kwargs`.
    """
    if reports_success(env_id):
        return {"info_keywords": ("is_success",), **monitor_kwargs}
    return dict(monitor_kwargs)


def import_packages(packages: Iterable[str]) -> None:
    """Imports the packages of `--gym-packages`, so that they register their environments.

    Args:
        packages: Module names.

    Raises:
        ConfigError: A module is not found, or one that it imports, or it fails as it is imported.
    """
    for name in packages:
        if not name or name.startswith("."):
            raise ConfigError(f"--gym-packages {name!r}: expected the name of a module, such as 'my_envs'")
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ConfigError(f"--gym-packages {name}: cannot be imported: {error}") from error
        except (Exception, SystemExit) as error:  # The user's code runs here: whatever it raises says what is wrong with it.
            raise ConfigError(f"--gym-packages {name}: cannot be imported: {reason(error)}") from error


def register_env(env_id: str, packages: Iterable[str] = ()) -> GymSpec:
    """Makes sure an environment is registered, importing no more than that takes.

    First come the packages; then, only for an id that is still unknown, our `NoVel` environments, the optional package
    that the id points to, and at last every optional package that is installed.

    Args:
        env_id: The environment's id, e.g. `"CartPole-v1"`.
        packages: Modules that register environments (`--gym-packages`).

    Returns:
        gymnasium's own recipe of the environment.

    Raises:
        ConfigError: The id is unknown (the nearest is named), or its package is missing (the extra is named).
    """
    packages = tuple(packages)
    import_packages(packages)
    if env_id not in gym.registry:
        register_novel_envs()
    if env_id not in gym.registry:
        _import_families(env_id)
    spec = gym.registry.get(env_id)
    if spec is None:
        module, colon, plain = env_id.partition(":")
        if colon:
            raise ConfigError(f"environment {env_id!r}: name the package apart: --gym-packages {module} --env {plain}")
        raise _unknown_env(env_id, packages)
    family = family_of(spec)
    if family is not None and not _installed(family):
        raise _missing(env_id, family)
    return spec


def _unknown_env(env_id: str, packages: tuple[str, ...]) -> ConfigError:
    error = unknown("environment", env_id, {*gym.registry, *NOVEL_IDS})
    # Names end alike in their versions: what is nearest may still be far.
    near = difflib.get_close_matches(env_id.lower(), [known.lower() for known in gym.registry], n=1, cutoff=0.8)
    if packages or near:
        return error
    return ConfigError(f"{error} If a package of yours registers it, name that: --gym-packages PACKAGE")


def family_of(spec: GymSpec) -> Family | None:
    """Finds the family of a registered environment by its entry point; None for users' own and gymnasium's plain ones."""
    point = str(spec.entry_point)
    return next((family for family in FAMILIES if family.entry in point), None)


def _import_families(env_id: str) -> None:
    """Imports the package that an unregistered id points to, or else all there are."""
    meant = [family for family in FAMILIES if family.ids and re.match(family.ids, env_id)]
    for family in meant:
        if not _installed(family):
            raise _missing(env_id, family)
        failure = _import(family)
        if failure is not None:
            raise ConfigError(f"environment {env_id!r}: {family.module} cannot be imported: {failure}")
    if meant:
        return
    for family in FAMILIES:
        if family.ids and _installed(family):
            failure = _import(family)
            if failure is not None:
                logger.warning("the environments of %s are left out, it cannot be imported: %s", family.module, failure)


def _import(family: Family) -> str | None:
    """Imports the package of a family, which registers its environments; tells what is wrong with it, if anything."""
    try:
        importlib.import_module(family.module)
    except ImportError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # A package that is too old for the others may fail in any way.
        return reason(error)
    return None


def _installed(family: Family) -> bool:
    return importlib.util.find_spec(family.module) is not None


def _missing(env_id: str, family: Family) -> ConfigError:
    return ConfigError(f"environment {env_id!r} needs the package {family.module}, which is not installed: {family.install}")
