"""How the configuration reports bad input: one line that says what is wrong and where it was read."""

from __future__ import annotations

import importlib.util

from lit_sb3_ray.errors import ConfigError

EXTRAS = {
    "ale_py": "atari",
    "Box2D": "box2d",
    "cv2": "atari",
    "gymnasium_robotics": "robotics",
    "highway_env": "highway",
    "huggingface_hub": "hub",
    "jax": "jax",
    "flax": "jax",
    "imageio_ffmpeg": "video",
    "PIL": "video",
    "sbx": "jax",
    "matplotlib": "plots",
    "minigrid": "minigrid",
    "mlflow": "mlflow",
    "moviepy": "video",
    "mujoco": "mujoco",
    "panda_gym": "panda",
    "pybullet_envs_gymnasium": "bullet",
    "rliable": "plots",
    "wandb": "wandb",
}
"""Importable package -> the extra of this project that installs it."""


class MissingPackageError(ConfigError):
    """A configuration needs a package that is not installed.

    Attributes:
        package: The importable name of the missing package.
    """

    def __init__(self, message: str, package: str) -> None:
        super().__init__(message)
        self.package = package


def problem(text: str, where: str) -> ConfigError:
    """Builds the error for a bad value.

    Args:
        text: What is wrong, quoting the value.
        where: The key, file or flag it was read from; may be empty.
    """
    return ConfigError(f"{text} ({where})" if where else text)


def reason(error: BaseException) -> str:
    """Tells an error in one line: its type and the message it carries."""
    line = " ".join(str(error).split())
    line = line if len(line) <= 200 else f"{line[:197]}..."
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def missing_package(package: str, needed_for: str, where: str = "") -> MissingPackageError:
    """Builds the error for a package that is not installed, naming the extra that brings it.

    Args:
        package: The importable name, e.g. `"minigrid"`.
        needed_for: What cannot be had without it, e.g. the path of a wrapper.
        where: The key, file or flag that asked for it.
    """
    extra = EXTRAS.get(package)
    remedy = f"pip install 'lit-sb3-ray[{extra}]'" if extra else f"install the package that provides {package!r}"
    place = f" ({where})" if where else ""
    return MissingPackageError(f"{needed_for} needs the package {package!r}, which is not installed{place}: {remedy}", package)


def require_package(package: str, needed_for: str) -> None:
    """Checks that a package is installed, without importing it.

    Args:
        package: The importable name.
        needed_for: What cannot be had without it.

    Raises:
        MissingPackageError: It is not installed; the extra that brings it is named.
    """
    if importlib.util.find_spec(package) is None:
        raise missing_package(package, needed_for)


def require_matplotlib() -> None:
    """Checks that pictures can be drawn.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    require_package("matplotlib", "drawing pictures")
