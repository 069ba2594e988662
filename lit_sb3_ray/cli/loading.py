"""Loading the libraries that a command works with."""

from __future__ import annotations

import gc
import importlib
import sys


def load_to_stay(module: str) -> None:
    """Imports a module with all that it needs, which then stays until the process ends.

    Torch, Lightning and Stable-Baselines3 make some million objects, none of them garbage. Python's collector would go through
    them while they are loaded, now and again in training, and once more when the process ends: 0.9 s in all on two cores.

    Args:
        module: Its full name. One that is loaded already is left as it is.
    """
    if module in sys.modules:
        return
    gc.collect()  # what is garbage by now would be kept, too
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(module)
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
