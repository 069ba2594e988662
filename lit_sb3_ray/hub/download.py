"""Downloading a run: looked over, then laid out as the run folder that it was.

Nothing that is downloaded is run. Every pickle is read with the list of classes before anything is put into the log folder,
and the run is marked, so that whatever opens it later reads it in the same way.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.config.documents import read_yaml
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.load import NOT_READ
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.experiment.origin import Origin, write_origin
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.hub.connection import connect, telling
from lit_sb3_ray.hub.names import CONFIG, METRICS, SETTINGS, STATISTICS, model_name, repository
from lit_sb3_ray.untrusted.archives import extract, open_archive
from lit_sb3_ray.untrusted.models import read_custom_objects, read_statistics

if TYPE_CHECKING:
    from huggingface_hub import HfApi

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Downloaded:
    """Files of a repository.

    Attributes:
        origin: Where they came from.
        model: The model.
        files: The others that there are, by their names in the repository.
    """

    origin: Origin
    model: Path
    files: Mapping[str, Path]


def download_run(
    folder: Path,
    algo: str,
    env_id: str,
    *,
    organization: str = "sb3",
    repo_name: str | None = None,
    exp_id: int = 0,
    force: bool = False,
    trust: bool = False,
    token: str | None = None,
    revision: str | None = None,
) -> RunFolder:
    """Downloads a run that this package or rl_zoo3 has pushed.

    Args:
        folder: The log folder.
        algo: The run's algorithm.
        env_id: The run's environment.
        organization: Whose repository it is.
        repo_name: The repository's name; None for `<algo>-<environment>`.
        exp_id: Number of the run folder; 0 for the next free one, below 0 for none.
        force: Whether a run that is there already is replaced.
        trust: Whether pickles are taken as they are, now and later, so that whatever their maker wrote into them is run.
        token: See `connect`.
        revision: A commit, branch or tag; None for the newest.

    Returns:
        The run folder.

    Raises:
        ConfigError: There is no such repository or run in it; its files are refused; or the run folder is there already.
    """
    api = connect(token)
    repo_id = repository(organization, algo, env_id, repo_name)
    run = RunFolder(_place(folder, algo, env_id, exp_id), env_id)
    if exp_id != 0:
        _check_free(run, exp_id, force)
    run_folder.check_writable(folder, "-f")
    downloaded = _fetch(api, repo_id, model_name(algo, env_id), trust, revision)
    check_files(downloaded)
    if exp_id < 0:
        with _made(run.path):
            _fill(run, downloaded)
        return run
    home = run.path.parent
    with _made(home), tempfile.TemporaryDirectory(prefix=".download_", dir=home) as place:
        # Whatever ends this process leaves no half of a run behind, which would be taken for the latest one.
        new = Path(place) / "new"
        _fill(RunFolder(new, env_id), downloaded)
        if exp_id == 0:
            run = run_folder.claim(folder, algo, env_id)
        elif run.path.exists():
            logger.info("Replacing %s", run.path)
        _replace(run.path, new, Path(place) / "old")
    return run


def check_files(downloaded: Downloaded) -> None:
    """Looks files over; a model and statistics that are not trusted are read, with the list of classes.

    Args:
        downloaded: The files.

    Raises:
        ConfigError: One is damaged, would run something, or leads out of its folder.
    """
    for name in SETTINGS:
        if name in downloaded.files and not isinstance(read_yaml(downloaded.files[name], run_file=True), dict):
            raise ConfigError(f"{name} of {downloaded.origin.repo_id} holds no mapping")
    if METRICS in downloaded.files:
        with open_archive(downloaded.files[METRICS]):
            pass
    if downloaded.origin.trusted:
        return
    read_custom_objects(downloaded.model, NOT_READ)
    if STATISTICS in downloaded.files:
        read_statistics(downloaded.files[STATISTICS])


def _fetch(api: HfApi, repo_id: str, name: str, trust: bool, revision: str | None) -> Downloaded:
    with telling(repo_id, "download from"):
        info = api.model_info(repo_id, revision=revision)
        there = {sibling.rfilename for sibling in info.siblings or ()}
        commit = str(info.sha)
        for needed in (f"{name}.zip", CONFIG):
            if needed not in there:
                listed = ", ".join(sorted(file for file in there if "/" not in file)) or "nothing"
                raise ConfigError(f"{repo_id} has no {needed}, so it holds no such run; it has {listed}")
        files = {}
        for wanted in (f"{name}.zip", *SETTINGS, STATISTICS, METRICS):
            if wanted in there:
                files[wanted] = Path(api.hf_hub_download(repo_id, wanted, revision=commit))
    return Downloaded(Origin(repo_id, commit, trust), files.pop(f"{name}.zip"), files)


def _place(folder: Path, algo: str, env_id: str, exp_id: int) -> Path:
    home = folder / algo_folder_name(algo)
    return home if exp_id < 0 else home / f"{env_folder_name(env_id)}_{exp_id}"


def _check_free(run: RunFolder, exp_id: int, force: bool) -> None:
    taken = run.path if exp_id > 0 else run.model
    if taken.exists() and not force:
        raise ConfigError(f"{str(taken)!r} is there already: give --force to replace it, or --exp-id 0 for a new run folder")


def _fill(run: RunFolder, downloaded: Downloaded) -> None:
    """Copies files to where a run has them: first the note on their origin, last the model, without which there is no run."""
    run.settings.mkdir(parents=True, exist_ok=True)
    write_origin(run.settings, downloaded.origin)
    for name, path in downloaded.files.items():
        if name == METRICS:
            extract(path, run.path, lambda file: file == "evaluations.npz" or file.endswith(".csv"))
        else:
            shutil.copyfile(path, run.statistics if name == STATISTICS else run.settings / name)
    run_folder.replace_file(run.model, partial(shutil.copyfile, downloaded.model))


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Makes a folder, and takes it away again, with those made for it, when nothing has come of it."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    with ExitStack() as undo:
        undo.callback(_remove_empty, missing)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise ConfigError(f"{str(folder)!r} cannot be written: {error.strerror or error}") from error
        undo.pop_all()


def _remove_empty(folders: Iterable[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _replace(path: Path, new: Path, old: Path) -> None:
    """Puts a run in its place; one that is there, or an empty one that was claimed, goes to the other."""
    if path.exists():
        lock = RunLock(path)
        try:
            path.rename(old)
        finally:
            lock.release()
    new.rename(path)
