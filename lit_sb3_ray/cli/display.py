"""Whether there is a screen, and how environments draw themselves where there is none."""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import sys
from collections.abc import Iterator, Mapping


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Tells whether there is a screen to show environments on.

    Args:
        environ: The environment variables.
        platform: As `sys.platform` gives it.

    Returns:
        True on Windows and macOS, and elsewhere when a display (or SDL's stand-in for one) is set.
    """
    if platform in ("win32", "darwin"):
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"))


def offscreen_variables() -> dict[str, str]:
    """Tells what makes libraries draw into memory without looking for a screen first.

    Returns:
        Environment variables: SDL's, and MuJoCo's where a library that draws without a screen is there for it.
    """
    variables = {"SDL_VIDEODRIVER": "dummy"}
    for library, name in (("EGL", "egl"), ("OSMesa", "osmesa")):
        if ctypes.util.find_library(library):
            return variables | {"MUJOCO_GL": name}
    return variables


@contextlib.contextmanager
def offscreen() -> Iterator[None]:
    """Lets environments draw into memory where there is no screen; what the user has set stays as it is."""
    if has_display(os.environ, sys.platform):
        yield
        return
    added = {name: value for name, value in offscreen_variables().items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
