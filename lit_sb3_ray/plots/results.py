"""Results of algorithms in environments: gathered from run folders, narrowed down, merged."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.aggregates import Limits, Result, aggregate
from lit_sb3_ray.plots.evaluations import Evaluations, read_evaluations
from lit_sb3_ray.plots.runs import check_runs, find_runs, nearest, nothing_to

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Results:
    """What is compared.

    Attributes:
        metric: The array of `evaluations.npz` it comes from.
        median: Whether tables show the median instead of mean and standard error.
        environments: Result by key (`PPO-logs`: algorithm and label) by environment. A key may be missing in one.
    """

    metric: str
    median: bool
    environments: Mapping[str, Mapping[str, Result]]

    @property
    def keys(self) -> list[str]:
        """All keys, in order of appearance."""
        return list(dict.fromkeys(key for results in self.environments.values() for key in results))


@dataclass(frozen=True)
class Selection:
    """What to show of results; an empty collection to keep keeps all.

    Attributes:
        skip_envs: Environments to leave out.
        keep_envs: Environments to keep, and no others.
        skip_keys: Keys to leave out.
        keep_keys: Keys to keep, and no others.
    """

    skip_envs: Collection[str] = ()
    keep_envs: Collection[str] = ()
    skip_keys: Collection[str] = ()
    keep_keys: Collection[str] = ()


def gather(
    folders: Mapping[str, Path], algos: Sequence[str], env_ids: Sequence[str], limits: Limits, metric: str = "results"
) -> Results:
    """Reads the evaluations of all runs of algorithms in environments.

    What is missing or damaged is told by a warning, and left out.

    Args:
        folders: Log folders by label.
        algos: Algorithms.
        env_ids: Environments, by their exact ids.
        limits: Which evaluations and runs count.
        metric: Which array of `evaluations.npz`.

    Raises:
        ConfigError: There is no run of an algorithm or in an environment, or nothing could be read.
    """
    check_runs(list(folders.values()), algos, env_ids)
    problems: list[str] = []
    environments: dict[str, dict[str, Result]] = {}
    for env_id in dict.fromkeys(env_ids):
        found = environments[env_id] = {}
        for algo in dict.fromkeys(algos):
            for label, folder in folders.items():
                try:
                    runs = _read(folder, algo, env_id, metric, problems)
                    if runs:
                        found[f"{algo.upper()}-{label}"] = aggregate(runs, limits)
                except ConfigError as error:
                    problems.append(str(error))
    if not any(environments.values()):
        raise nothing_to("compare", problems)
    for problem in problems:
        logger.warning("%s: left out", problem)
    return Results(metric, False, environments)


def select(results: Results, selection: Selection) -> Results:
    """Narrows results down.

    Raises:
        ConfigError: A name is none of theirs, or nothing is left.
    """
    envs = _chosen(list(results.environments), "environment", "--skip-envs", selection.skip_envs, selection.keep_envs)
    keys = _chosen(results.keys, "key", "--skip-keys", selection.skip_keys, selection.keep_keys)
    kept = {env: {key: results.environments[env][key] for key in keys if key in results.environments[env]} for env in envs}
    if not any(kept.values()):
        raise ConfigError("nothing is left to show: --skip-envs, --keep-envs, --skip-keys and --keep-keys leave no result")
    return replace(results, environments=kept)


def merge(first: Results, second: Results) -> Results:
    """Adds results to others; of one key in one environment, the second's go before the first's.

    Raises:
        ConfigError: They are of different arrays of `evaluations.npz`.
    """
    if first.metric != second.metric:
        raise ConfigError(f"--merge: results of {first.metric!r} and of {second.metric!r} cannot be compared")
    merged = {env: dict(results) for env, results in first.environments.items()}
    for env, results in second.environments.items():
        merged.setdefault(env, {}).update(results)
    return replace(first, environments=merged)


def relabel(results: Results, labels: Sequence[str]) -> Results:
    """Gives the keys other names, in order.

    Raises:
        ConfigError: There are more or fewer names than keys, or one twice.
    """
    keys = results.keys
    if len(labels) != len(keys):
        raise ConfigError(f"--labels names {len(labels)}, and there are {len(keys)} keys: {', '.join(keys)}")
    if len(set(labels)) < len(labels):
        raise ConfigError(f"--labels: one name twice in {', '.join(labels)}")
    names = dict(zip(keys, labels, strict=True))
    renamed = {env: {names[key]: result for key, result in found.items()} for env, found in results.environments.items()}
    return replace(results, environments=renamed)


def _read(folder: Path, algo: str, env_id: str, metric: str, problems: list[str]) -> dict[str, Evaluations]:
    runs = {}
    for run in find_runs(folder, algo, env_id):
        try:
            runs[str(run.path)] = read_evaluations(run.path, metric)
        except ConfigError as error:
            problems.append(str(error))
    return runs


def _chosen(names: list[str], kind: str, flag: str, skipped: Collection[str], kept: Collection[str]) -> list[str]:
    for asked in (*skipped, *kept):
        if asked not in names:
            raise nearest(kind, asked, names, flag if asked in skipped else flag.replace("skip", "keep"))
    return [name for name in names if name not in skipped and (name in kept or not kept)]
