"""The device that SB3 places a policy on."""

from __future__ import annotations

import torch

from lit_sb3_ray.errors import ConfigError


def check_device(device: torch.device | str) -> None:
    """Checks that a device exists here; SB3 itself takes the CPU for a GPU that does not, without a word.

    Args:
        device: `auto`, `cpu`, `cuda`, `cuda:1`, ...

    Raises:
        ConfigError: No such device.
    """
    if device == "auto":
        return
    try:
        asked = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"--device {str(device)!r} is no device: auto, cpu, cuda or cuda:<number>") from error
    if asked.type not in ("cpu", "cuda"):
        raise ConfigError(f"--device {str(device)!r}: algorithms run on auto, cpu, cuda or cuda:<number>")
    if asked.type == "cuda" and (asked.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device {str(device)!r}: this machine shows {torch.cuda.device_count()} CUDA devices")
