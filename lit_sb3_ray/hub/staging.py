"""The files of a repository, put together in a folder out of a run."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lit_sb3_ray.experiment.run_folder import RunFolder, write_yaml
from lit_sb3_ray.hub.names import ARGUMENTS, CONFIG, ENV_KWARGS, METRICS, STATISTICS, model_name
from lit_sb3_ray.untrusted.archives import open_archive

NOT_SHARED = {"storage": None, "storage_path": "", "env_vars": ()}
"""Arguments of a run that stay at home: addresses and environment variables may hold passwords."""


def stage(
    run: RunFolder,
    algo: str,
    model: Path,
    hyperparameters: Mapping[str, Any],
    arguments: Mapping[str, Any],
    env_kwargs: Mapping[str, Any],
    folder: Path,
) -> None:
    """Puts the files together that tell what a run was and what came of it.

    The model goes as it is, and not as loading and saving would make it: two pushes of one model are the same bytes, of which
    the Hub takes none twice.

    Args:
        run: The run.
        algo: Its algorithm.
        model: Which of its models.
        hyperparameters: Its `config.yml`.
        arguments: Its `args.yml`.
        env_kwargs: Arguments of the environment's constructor.
        folder: Where they go; it exists.

    Raises:
        ConfigError: The model is damaged.
    """
    name = model_name(algo, run.env_id)
    shutil.copyfile(model, folder / f"{name}.zip")
    _unpack_texts(model, folder / name)
    statistics = run.statistics_of(model)
    if statistics.exists():
        shutil.copyfile(statistics, folder / STATISTICS)
    write_yaml(folder / CONFIG, dict(sorted(hyperparameters.items())))
    write_yaml(folder / ARGUMENTS, {**arguments, **{name: value for name, value in NOT_SHARED.items() if name in arguments}})
    write_yaml(folder / ENV_KWARGS, env_kwargs)
    _pack_metrics(run.path, folder / METRICS)


def _unpack_texts(model: Path, folder: Path) -> None:
    """Lays the model's description open, so that the repository's page can show it; its weights stay in the zip."""
    folder.mkdir()
    with open_archive(model) as archive:
        for entry in archive.namelist():
            if PurePosixPath(entry).suffix != ".pth" and PurePosixPath(entry).name == entry:
                archive.extract(entry, folder)


def _pack_metrics(run: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted([*run.glob("evaluations.npz"), *run.glob("*.csv")]):
            archive.write(file, file.name)
