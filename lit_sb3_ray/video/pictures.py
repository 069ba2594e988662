"""What environments look like: one picture of all of them, after the reset and after each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn, tile_images

from lit_sb3_ray.config.problems import reason
from lit_sb3_ray.errors import ConfigError

USUAL_RATE = 30.0
"""Pictures a second, where the environment does not say."""


class PictureTap(VecEnvWrapper):
    """Hands on a picture of the environments after their reset and after every step; all else passes through."""

    def __init__(self, venv: VecEnv, show: Callable[[np.ndarray], None]) -> None:
        """Wraps environments that were made with the render mode `rgb_array`.

        Args:
            venv: The environments.
            show: Takes each picture, bytes of the shape `(height, width, 3)`; those of several environments are tiled.
        """
        super().__init__(venv)
        self._show = show

    def reset(self) -> VecEnvObs:
        """Resets the environments and shows them.

        Raises:
            ConfigError: They give no picture.
        """
        observations = self.venv.reset()
        self._show(first_picture(self.venv))
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for the step and shows what it led to; an environment whose episode ended is shown after its reset."""
        result = self.venv.step_wait()
        self._show(picture(self.venv))
        return result


def first_picture(env: VecEnv) -> np.ndarray:
    """Draws environments that may not be able to draw themselves.

    Args:
        env: The environments, after a reset.

    Returns:
        As `picture`.

    Raises:
        ConfigError: They cannot be drawn; the line says why.
    """
    try:
        return picture(env)
    except ConfigError:
        raise
    except Exception as error:  # The environment's own code draws: whatever it raises says why there is no picture.
        raise ConfigError(f"{_name(env)} cannot be recorded: {reason(error)}") from error


def picture(env: VecEnv) -> np.ndarray:
    """Draws environments.

    Args:
        env: The environments, after a reset, made with the render mode `rgb_array`.

    Returns:
        Bytes of the shape `(height, width, 3)`: the one environment, or all of them as tiles.

    Raises:
        ConfigError: What they give is no picture.
    """
    if env.render_mode != "rgb_array":
        raise ConfigError(f"{_name(env)} cannot be recorded: its render_mode is {env.render_mode!r} and not 'rgb_array'")
    pictures = [_checked(env, image) for image in env.get_images()]
    if len(pictures) == 1:
        return pictures[0]
    if len({image.shape for image in pictures}) > 1:
        raise ConfigError(f"{_name(env)} draws pictures of different sizes, which cannot be tiled: record one environment")
    return tile_images(pictures)


def picture_rate(env: VecEnv) -> float:
    """Tells how many pictures make up a second, as the environment's `metadata["render_fps"]` has it.

    Args:
        env: The environments.

    Returns:
        The rate; `USUAL_RATE` where the environment does not say.
    """
    metadata = env.get_attr("metadata")[0] if env.has_attr("metadata") else None
    rate = metadata.get("render_fps") if isinstance(metadata, dict) else None
    return float(rate) if isinstance(rate, int | float) and rate > 0 else USUAL_RATE


def _checked(env: VecEnv, image: object) -> np.ndarray:
    if isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8 and image.size:
        return image
    got = f"{image.dtype} of shape {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
    raise ConfigError(f"{_name(env)} cannot be recorded: it draws {got} instead of bytes of shape (height, width, 3)")


def _name(env: VecEnv) -> str:
    spec = env.get_attr("spec")[0] if env.has_attr("spec") else None
    return "the environment" if spec is None else f"environment {spec.id!r}"
