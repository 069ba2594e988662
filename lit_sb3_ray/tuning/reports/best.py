"""The best trials of a study as hyperparameter files."""

from __future__ import annotations

import json
import logging
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
from lit_sb3_ray.tuning.reports.record import StudyRecord, best_first, count_states, is_drawable, value_of
from lit_sb3_ray.tuning.reports.wording import count, cut
from lit_sb3_ray.tuning.rows import HYPERPARAMS, SEED, SEED_VALUES, SPREAD, TIMESTEPS
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
        states = ", ".join(f"{many} {state}" for state, many in count_states(study.trials).items()) or "no trials at all"
        raise ConfigError(f"study {study.name!r} has no best trial yet: none is complete with a finite value ({states})")
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
    notes = (_headline(study, trial), note, *_usage(study, trial, entry))
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


def _usage(study: StudyRecord, trial: FrozenTrial, entry: Mapping[str, Any]) -> list[str]:
    algo, env_id = study.algo, study.env_id
    if algo is None or env_id is None:
        return []
    seed = trial.user_attrs.get(SEED)
    seeded = f" --seed {seed}" if isinstance(seed, int) else ""
    lines = [f"lit-sb3-ray train --algo {algo} --env {env_id}{seeded} --conf-file THIS_FILE"]
    own, full = to_number(entry.get("n_timesteps")), _full_budget(algo, env_id)
    if own is not None and full is not None and own < full[0]:
        lines.append(f"n_timesteps is the study's; {full[1]} trains {env_id} for {full[0]:_}: with -n {full[0]} in full.")
    return lines


def _full_budget(algo: str, env_id: str) -> tuple[int, str] | None:
    """The env steps that the packaged file trains for, and the file's name."""
    try:
        entry, where = _packaged_entry(algo, env_id)
    except ConfigError:
        return None  # An algorithm or env of the user's own: there is nothing to compare with.
    steps = to_number(entry.get("n_timesteps"))
    return None if steps is None else (int(steps), where.partition(",")[0])
