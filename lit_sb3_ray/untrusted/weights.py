"""A model's weights, which torch reads with `weights_only`: that runs nothing, but makes room for whatever it is told."""

from __future__ import annotations

import io
import pickletools
import zipfile
from pathlib import Path
from typing import IO

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.archives import check_archive, open_archive

WEIGHTS = ".pth"
"""How the names of such files end."""
ZIP = b"PK"
"""The first bytes of a zip archive."""

OLD_PICKLES = 5
"""Before the numbers, torch's old format has its mark, its version, the machine, the tensors, and their storages' keys."""

_NAMES = {
    "collections": ("OrderedDict",),
    "torch": (*("device", "bfloat16", "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),),
    "torch._utils": ("_rebuild_parameter", "_rebuild_tensor", "_rebuild_tensor_v2"),
    "torch.storage": ("TypedStorage", "UntypedStorage"),
}


def check_weights(path: Path | IO[bytes]) -> None:
    """Looks the weights in a model over.

    Args:
        path: The model's `.zip`, or that file, open.

    Raises:
        ConfigError: Some are damaged, or hold what weights do not.
    """
    with open_archive(path) as archive:
        for name in archive.namelist():
            if name.endswith(WEIGHTS):
                with archive.open(name) as file:
                    _check_file(io.BytesIO(file.read()), f"{path} ({name})")


def _check_file(file: IO[bytes], where: str) -> None:
    try:
        is_archive = file.read(len(ZIP)) == ZIP
        file.seek(0)
        if not is_archive:
            check_pickles(file, OLD_PICKLES)
            return
        with zipfile.ZipFile(file) as archive:
            check_archive(archive, where)
            for name in archive.namelist():
                if name.endswith(".pkl"):
                    check_pickles(io.BytesIO(archive.read(name)))
    except ValueError as error:
        raise ConfigError(f"{where} was refused: {' '.join(str(error).split())}") from error


def check_pickles(file: IO[bytes], count: int = 1) -> None:
    """Checks that pickles name nothing but tensors and what they are made of.

    torch also lets them name types that fill the memory when they are called, such as `bytearray`.

    Args:
        file: Where they stand, one after another.
        count: How many.

    Raises:
        ValueError: They name something else, or are none.
    """
    for _ in range(count):
        for instruction, argument, _ in pickletools.genops(file):
            if instruction.name == "GLOBAL":
                module, _, name = str(argument).partition(" ")
                is_storage = module == "torch" and name.endswith("Storage")
                if not is_storage and name not in _NAMES.get(module, ()):
                    raise ValueError(f"it holds {module}.{name}, which no weights need")
