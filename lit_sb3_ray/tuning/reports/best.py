"""The best trials of a study as hyperparameter files."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, select_entry
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.envs.families import is_atari
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.reports.record import (
    BROKEN_OFF,
    FULL_BUDGET,
    RUN_FLAGS,
    StudyRecord,
    best_first,
    count_states,
    is_drawable,
    value_of,
)
from lit_sb3_ray.tuning.reports.wording import count, cut
from lit_sb3_ray.tuning.rows import FOLDER, HYPERPARAMS, PARAMS_AT_END, SEED, SEED_VALUES, SPREAD, TIMESTEPS
from lit_sb3_ray.tuning.space.conversion import convert

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

logger = logging.getLogger(__name__)

_WIDTH = 240


@dataclass(frozen=True)
class BestTrial:
    """A trial as an entry of a hyperparameter file.

    Attributes:
        trial: The trial.
        env_id: What the entry stands under.
        entry: Hyperparameters that train as the trial did.
        notes: What a reader should know, a line each.
    """

    trial: FrozenTrial
    env_id: str
    entry: dict[str, Any]
    notes: tuple[str, ...]


def best_trials(study: StudyRecord, number: int) -> list[BestTrial]:
    """Makes entries of the best trials.

    Args:
        study: The study.
        number: How many; fewer are given when the study has no more.

    Raises:
        ConfigError: No trial is complete, or the study does not say what it has trained.
    """
    ranked = best_first(study)[:number]
    if not ranked:
        counted = count_states(study.trials)
        states = ", ".join(f"{many} {state}" for state, many in counted.items()) or "no trials at all"
        resume = shlex.join(["lit-sb3-ray", "tune", "--resume", str(study.attributes.get(FOLDER, "STUDY"))])
        further = f"; `{resume}` goes on with what was broken off" if BROKEN_OFF in counted else ""
        raise ConfigError(
            f"study {study.name!r} has no best trial yet: none is complete with a finite value ({states}){further}"
        )
    return [_entry_of(study, trial) for trial in ranked]


def as_file(best: Sequence[BestTrial]) -> str:
    """Writes trials as YAML: one as a file for `--conf-file`, several as a list of such files' contents."""
    if len(best) == 1:
        return _comments(best[0]) + _dump(_content(best[0]))
    return "\n".join(f"# {place}.\n{_comments(one)}{_dump([_content(one)])}" for place, one in enumerate(best, 1))


def _content(best: BestTrial) -> dict[str, Any]:
    return {best.env_id: dict(sorted(best.entry.items()))}


def _comments(best: BestTrial) -> str:
    return "".join(f"# {cut(note, _WIDTH)}\n" for note in best.notes)


def _dump(content: Any) -> str:
    return yaml.safe_dump(to_plain(content), sort_keys=False, allow_unicode=True)


def _entry_of(study: StudyRecord, trial: FrozenTrial) -> BestTrial:
    entry, note = _saved_entry(trial), ""
    if entry is None:
        entry, note = _converted_entry(study, trial)
    # An entry named `default` serves any env.
    notes = (_headline(study, trial), note, _changes(trial), *_usage(study, trial, entry))
    return BestTrial(trial, study.env_id or "default", entry, tuple(filter(None, notes)))


def _saved_entry(trial: FrozenTrial) -> dict[str, Any] | None:
    """The entry that the trial has trained with, if it says so."""
    saved = trial.user_attrs.get(HYPERPARAMS)
    if isinstance(saved, str):
        try:
            saved = json.loads(saved)
        except ValueError:
            logger.warning("Trial %d: its hyperparameters are no JSON; they are made from its parameters", trial.number)
    return dict(saved) if isinstance(saved, Mapping) and saved else None


def _converted_entry(study: StudyRecord, trial: FrozenTrial) -> tuple[dict[str, Any], str]:
    """The entry of a trial of another system: the packaged hyperparameters, over them what the trial has drawn."""
    if study.algo is None or study.env_id is None:
        raise ConfigError(
            f"study {study.name!r} does not say which algorithm and env it is of, nor trial {trial.number} with which "
            "hyperparameters it has trained: no file can be made of it"
        )
    packaged, where = _packaged_entry(study.algo, study.env_id)
    try:
        entry = merge(packaged, convert(study.algo, trial.params, packaged))
    except (KeyError, TypeError, ValueError) as error:  # ConfigError is one of these, too.
        raise ConfigError(
            f"the parameters of trial {trial.number} are not of this package's spaces: {cut(error, 120)}"
        ) from error
    if study.budget is not None:
        entry["n_timesteps"] = study.budget
    return entry, f"Made from {where} and the trial's parameters; what else the study was given is not in it."


def _packaged_entry(algo: str, env_id: str) -> tuple[dict[str, Any], str]:
    source = read_entries(None, algo)
    entry, key = select_entry(source, env_id, is_atari(env_id))
    return entry, f"{source.label}, entry {key},"


def _headline(study: StudyRecord, trial: FrozenTrial) -> str:
    attributes = trial.user_attrs
    seeds = attributes.get(SEED_VALUES)
    spread = ""
    if is_drawable(attributes.get(SPREAD)) and isinstance(seeds, list | tuple):
        spread = f" (+/- {attributes[SPREAD]:.4g} over {count(len(seeds), 'seed')})"
    steps = to_number(attributes.get(TIMESTEPS))
    after = f" after {count(int(steps), 'env step')}" if steps is not None and is_drawable(steps) else ""
    return f"Trial {trial.number} of study {study.name}: {value_of(trial):.6g}{spread}{after}"


def _changes(trial: FrozenTrial) -> str:
    """What a member of a population has had at its end, where it did not keep what it began with."""
    at_end = trial.user_attrs.get(PARAMS_AT_END)
    if not isinstance(at_end, Mapping):
        return ""
    changed = ", ".join(f"{name}: {value:.4g}" if is_drawable(value) else f"{name}: {value}" for name, value in at_end.items())
    return f"This is what it began with; a population changes that on the way, and in the end it was {changed}."


def _usage(study: StudyRecord, trial: FrozenTrial, entry: Mapping[str, Any]) -> list[str]:
    words = train_words(study, entry)
    if not words:
        return []
    seed = trial.user_attrs.get(SEED)
    seeded = ["--seed", str(seed)] if isinstance(seed, int) else []
    lines = [shlex.join([*words, *seeded, "--conf-file", "THIS_FILE"])]
    full = _longer_budget(study, entry)
    if full is not None:
        lines.append(f"n_timesteps is the study's; {full[1]} trains {study.env_id} for {full[0]:_}, and so does -n {full[0]}.")
    return lines


def train_words(study: StudyRecord, entry: Mapping[str, Any]) -> list[str]:
    """Writes the command that trains with a trial's hyperparameters, for as long as the study's own file says.

    Args:
        study: The study.
        entry: The trial's hyperparameters.

    Returns:
        The words of the command line, all but `--conf-file` with the entry's file; empty where the study does not say
        enough.
    """
    if study.algo is None or study.env_id is None:
        return []
    flags = study.attributes.get(RUN_FLAGS)
    full = _longer_budget(study, entry)
    return [
        *("lit-sb3-ray", "train", "--algo", study.algo, "--env", study.env_id),
        *(map(str, flags) if isinstance(flags, list | tuple) else ()),
        *(() if full is None else ("-n", str(full[0]))),
    ]


def _longer_budget(study: StudyRecord, entry: Mapping[str, Any]) -> tuple[int, str] | None:
    """The env steps of the study's file and the file's name, where they are more than the trials had."""
    own = to_number(entry.get("n_timesteps"))
    if own is None or study.algo is None or study.env_id is None:
        return None
    noted = study.attributes.get(FULL_BUDGET)
    if isinstance(noted, list | tuple) and len(noted) == 2:
        steps = to_number(noted[0])
        full = None if steps is None else (int(steps), str(noted[1]))
    else:
        full = _packaged_budget(study.algo, study.env_id)
    return full if full is not None and own < full[0] else None


def _packaged_budget(algo: str, env_id: str) -> tuple[int, str] | None:
    """The env steps that the packaged file trains for, and the file's name."""
    try:
        entry, where = _packaged_entry(algo, env_id)
    except ConfigError:
        return None  # An algorithm or env of the user's own: there is nothing to compare with.
    steps = to_number(entry.get("n_timesteps"))
    return None if steps is None else (int(steps), where.partition(",")[0])
