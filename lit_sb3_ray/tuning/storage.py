"""Where studies are kept, and the way back from there to one trial's parameters."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.tuning.rows import PARAMS_AT_END

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

logger = logging.getLogger(__name__)

ALGO = "algo"
JOURNAL = ".log"
SQLITE = "sqlite:///"
DATABASES = (".db", ".sqlite", ".sqlite3")
# Seconds that a driver waits for whoever else has locked an SQLite database, before it gives the study up.
LOCK_PATIENCE_S = 120.0


def open_storage(storage: str | None) -> BaseStorage:
    """Opens a storage, and makes it if it is not there yet.

    Args:
        storage: None for memory, the path of a journal file (it ends in `.log`; its folder is made), or an Optuna URL.

    Raises:
        ConfigError: It cannot be opened, or a journal is not whole.
    """
    from optuna.storages import InMemoryStorage, RDBStorage, get_storage

    from lit_sb3_ray.tuning.journal import open_journal

    if storage is None:
        return InMemoryStorage()
    if "://" in storage and storage.endswith(JOURNAL) and not storage.startswith(SQLITE):
        raise ConfigError(f"--storage {storage!r}: a journal is a file of this machine; other storages are databases")
    if "://" not in storage and not storage.endswith(JOURNAL):
        hint = f"; is it {SQLITE}{storage}?" if storage.endswith(DATABASES) else ""
        raise ConfigError(f"--storage {storage!r} cannot be opened: it is neither a URL nor a journal's path (.log){hint}")
    with _readable(storage):
        if storage.startswith(SQLITE):
            return RDBStorage(storage, engine_kwargs={"connect_args": {"timeout": LOCK_PATIENCE_S}})
        if not storage.endswith(JOURNAL):
            return get_storage(storage)
        Path(storage).absolute().parent.mkdir(parents=True, exist_ok=True)
        return open_journal(storage)


def open_study(storage: str | None, name: str | None, *, must_exist: bool = False) -> Study:
    """Opens the study of that name, or begins it.

    Args:
        storage: See `open_storage`.
        name: The study's name; None for a new one.
        must_exist: Whether to refuse to begin it.

    Raises:
        ConfigError: The storage cannot be opened, the study is not there, or it minimises.
    """
    import optuna

    opened = open_storage(storage)
    if must_exist:
        with _readable(storage or "memory"):
            names = optuna.get_all_study_names(opened)
        if name not in names:
            raise unknown("study", str(name), names, f"--study-name; storage {storage}")
    told = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with _readable(storage or "memory"):
            study = optuna.create_study(storage=opened, study_name=name, load_if_exists=True, direction="maximize")
    finally:
        optuna.logging.set_verbosity(told)
    if study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
        raise ConfigError(f"study {study.study_name!r} in {storage} does not maximise one value: take another --study-name")
    return study


def load_study(storage: str, name: str | None) -> Study:
    """Opens a study that is there; nothing is made.

    Args:
        storage: The path of a journal file (it ends in `.log`), or an Optuna URL.
        name: The study's name; None for the only one in the storage.

    Raises:
        ConfigError: There is no such storage or study, or more than one may be meant.
    """
    import optuna

    path = _file_of(storage)
    if path is not None and not path.is_file():
        raise ConfigError(f"--storage {storage!r}: there is no such file")
    opened = open_storage(storage)
    with _readable(storage):
        names = optuna.get_all_study_names(opened)
        if name is None and len(names) == 1:
            name = names[0]
        if name is None:
            has = f"has {len(names)} studies, name one with --study-name: {', '.join(names[:8])}" if names else "has no study"
            raise ConfigError(f"storage {storage} {has}")
        if name not in names:
            raise unknown("study", name, names, f"--study-name; storage {storage}")
        return optuna.load_study(storage=opened, study_name=name)


def find_existing(storage: str, name: str | None) -> Study | None:
    """Opens a study if the storage has it; no study is made.

    Args:
        storage: See `open_storage`.
        name: The study's name.

    Raises:
        ConfigError: The storage cannot be opened.
    """
    import optuna

    opened = open_storage(storage)
    with _readable(storage):
        return optuna.load_study(storage=opened, study_name=name) if name in optuna.get_all_study_names(opened) else None


def check_algorithm(study: Study, algo: str) -> None:
    """Looks whether a study searches an algorithm, as far as it says so.

    Raises:
        ConfigError: It searches another one.
    """
    known = study.user_attrs.get(ALGO)
    if known not in (None, algo):
        raise ConfigError(f"study {study.study_name!r} is one of {known}, not of {algo}: take another --study-name")


def claim_for(study: Study, algo: str) -> None:
    """Notes which algorithm a study searches; a study that was begun by another system says none.

    Args:
        study: The study.
        algo: The algorithm's name.

    Raises:
        ConfigError: It searches another one.
    """
    check_algorithm(study, algo)
    # Rows that wait were put there for whoever begins the study.
    if ALGO not in study.user_attrs and all(row.state.name == "WAITING" for row in study.get_trials(deepcopy=False)):
        study.set_user_attr(ALGO, algo)


def find_trial(storage: str | None, study_name: str | None, trial_id: int | None, algo: str | None = None) -> FrozenTrial:
    """Looks up a trial.

    Args:
        storage: The study's storage; it must exist.
        study_name: The study's name.
        trial_id: The trial's number, from 0; None for the best.
        algo: The algorithm that is to train with it; None for any.

    Raises:
        ConfigError: There is no such storage, study or trial, the study is another algorithm's, or the trial has drawn no
            parameters.
    """
    if storage is None or study_name is None:
        raise ConfigError("a trial is looked up by --storage and --study-name: one of them is missing")
    study = load_study(storage, study_name)
    with _readable(storage):
        known = study.user_attrs.get(ALGO)
        if algo is not None and known not in (None, algo):
            raise ConfigError(f"study {study_name!r} is one of {known}, not of {algo}")
        trial = _best(study) if trial_id is None else _numbered(study, trial_id)
    if not trial.params:
        raise ConfigError(f"trial {trial.number} of study {study_name!r} has no parameters ({trial.state.name})")
    if algo is not None:
        logger.info("Hyperparameters of trial %d of study %s", trial.number, study_name)
        if PARAMS_AT_END in trial.user_attrs:
            logger.warning("Trial %d was of a population, which changes them on the way: these are its first", trial.number)
    return trial


def _best(study: Study) -> FrozenTrial:
    from optuna.trial import TrialState

    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        raise ConfigError(f"study {study.study_name!r} has no best trial yet: none is complete")
    return study.best_trial


def _numbered(study: Study, number: int) -> FrozenTrial:
    trials = study.get_trials(deepcopy=False)
    for trial in trials:
        if trial.number == number:
            return trial
    has = f"it has 0 to {len(trials) - 1}" if trials else "it has none yet"
    raise ConfigError(f"--trial-id {number}: no such trial in study {study.study_name!r} ({has})")


def _file_of(storage: str) -> Path | None:
    if storage.endswith(JOURNAL):
        return Path(storage)
    return Path(storage.removeprefix(SQLITE)) if storage.startswith(SQLITE) else None


@contextmanager
def _readable(storage: str) -> Iterator[None]:
    """Turns what goes wrong with a storage into one line."""
    try:
        yield
    except ConfigError:
        raise
    except _storage_errors() as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"--storage {storage!r} cannot be opened: {reason}") from error


def _storage_errors() -> tuple[type[Exception], ...]:
    """What opening a storage may raise; asked for only then, since SQLAlchemy takes long to import."""
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    # RuntimeError: a database of another version of Optuna.
    return (OptunaError, SQLAlchemyError, ImportError, OSError, RuntimeError, ValueError, KeyError)
