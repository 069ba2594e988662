"""Finds run folders and the models in them by path alone.

The tree is `<folder>/<algo>/<E>_<k>[_<uuid>]/`, where `<E>` is the environment id as folders spell it. The final model of a
run is `<E>.zip`, its best `best_model.zip`, and `rl_model_<steps>_steps.zip` are those saved on the way; settings and
statistics are in the sub-folder `<E>/`.
"""

from __future__ import annotations

import difflib
import glob
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lit_sb3_ray.errors import ConfigError

Which = Literal["final", "best"] | int
"""Which model of a run: the final one, the best one, or the one saved at so many env steps."""

_RUN_SUFFIX = re.compile(r"_(?P<number>\d+)(?:_(?P<uuid>[0-9a-fA-F-]{8,36}))?")
_RUN_FOLDER = re.compile(f"(?P<env>.+?){_RUN_SUFFIX.pattern}")
_SHOWN = 8


@dataclass(frozen=True)
class RunName:
    """A run folder's name, taken apart.

    Attributes:
        path: The run folder.
        number: The run's number.
        uuid: The unique id at the name's end, or an empty string.
    """

    path: Path
    number: int
    uuid: str

    @property
    def exp_id(self) -> str:
        """What addresses this run and no other: its number, and its unique id if it has one."""
        return f"{self.number}_{self.uuid}" if self.uuid else str(self.number)


def env_folder_name(env_id: str) -> str:
    """Spells an environment id as folders and files do.

    Args:
        env_id: Id such as `CartPole-v1`, `ALE/Pong-v5` or `my_package:MyEnv-v0`.

    Returns:
        The id with `/` as `-` and without its module.

    Raises:
        ConfigError: There is more than one colon in it.
    """
    module, _, name = env_id.rpartition(":")
    if ":" in module:
        raise ConfigError(f"environment id {env_id!r} has more than one ':'")
    return name.replace("/", "-")


def algo_folder_name(algo: str) -> str:
    """Spells an algorithm's name as its folder does.

    Args:
        algo: A name such as `ppo`, or a path such as `package.module:Class`.

    Returns:
        The name with `:` as `-`.
    """
    return algo.replace(":", "-")


def split_run_folder(name: str) -> tuple[str, int] | None:
    """Takes the name of a run folder apart.

    Args:
        name: The name, without the folder's path.

    Returns:
        The environment, as folders spell it, and the run's number; None for another name.
    """
    match = _RUN_FOLDER.fullmatch(name)
    return None if match is None else (match["env"], int(match["number"]))


def list_runs(folder: Path, env_id: str) -> list[RunName]:
    """Lists the runs of one environment.

    Args:
        folder: The folder of one algorithm, `<log folder>/<algo>`.
        env_id: The environment's id.

    Returns:
        The runs by number; among those of one number (unique ids allow it) the one written to last comes last.
    """
    name = env_folder_name(env_id)
    runs = []
    for found in glob.glob(glob.escape(str(folder / name)) + "_*"):
        path = Path(found)
        match = _RUN_SUFFIX.fullmatch(path.name[len(name) :])
        if match is not None and path.is_dir():
            runs.append(RunName(path, int(match["number"]), match["uuid"] or ""))
    return sorted(runs, key=lambda run: (run.number, run.path.stat().st_mtime_ns, run.path.name))


def find_run(folder: Path, algo: str, env_id: str, exp_id: int | str = 0) -> Path:
    """Finds the folder of one run.

    Args:
        folder: The log folder, such as `logs`.
        algo: The algorithm's name.
        env_id: The environment's id.
        exp_id: 0 for the latest run; above 0 that run; below 0 the algorithm's own folder, without a run folder. A word
            addresses a run with a unique id: the id, its beginning, `<number>_<id>`, or the folder's name.

    Returns:
        The run folder. Without any run folder, 0 gives the algorithm's folder if models lie there directly.

    Raises:
        ConfigError: No run, or more than one, answers to `exp_id`; the message lists those there are.
    """
    home = folder / algo_folder_name(algo)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}: name the one that runs were written to, such as -f logs")
    if list(folder.glob("*/config.yml")):
        root, number = folder.resolve().parent.parent, folder.name.rpartition("_")[2]
        raise ConfigError(f"{str(folder)!r} is a run folder: give the log folder instead, -f {root} --exp-id {number}")
    if not home.is_dir():
        near = _near(algo_folder_name(algo), _folders(folder))
        raise ConfigError(f"no runs of {algo} in {str(folder)!r}: {near}{_listing('it holds', _folders(folder))}")
    if isinstance(exp_id, int) and exp_id < 0:
        return home
    runs = list_runs(home, env_id)
    if exp_id == 0 and not runs and (home / f"{env_folder_name(env_id)}.zip").is_file():
        return home
    if not runs:
        known = {name if split is None else split[0] for name in _folders(home) for split in [split_run_folder(name)]}
        near = _near(env_folder_name(env_id), known)
        studies = [name for name in _folders(home) if name.startswith(f"{env_folder_name(env_id)}_study_")]
        if studies:
            near = f"there is a study, whose best trial `train --from-study {home / studies[-1]}` trains; "
        raise ConfigError(f"no run of {algo} on {env_id} in {str(home)!r}: {near}{_listing('it holds', _folders(home))}")
    if exp_id == 0:
        return runs[-1].path
    matching = [run for run in runs if _answers(run, exp_id)]
    if len(matching) == 1:
        return matching[0].path
    problem = "more than one run" if matching else "no run"
    ids = [run.exp_id for run in matching or runs]
    raise ConfigError(f"{problem} of {algo} on {env_id} has the id {exp_id} in {str(home)!r}: {_listing('ids are', ids)}")


def list_checkpoints(run: Path) -> dict[int, Path]:
    """Lists the models a run saved on the way.

    Args:
        run: The run folder.

    Returns:
        The files by env steps, fewest first.
    """
    found = {}
    for path in run.glob("rl_model_*_steps.zip"):
        match = re.fullmatch(r"rl_model_(\d+)_steps\.zip", path.name)
        if match is not None:
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def which_model(
    run: Path, *, load_best: bool = False, load_checkpoint: int | None = None, load_last_checkpoint: bool = False
) -> Which:
    """Tells which model of a run the flags of `enjoy` and its like mean.

    Args:
        run: The run folder.
        load_best: The best model; goes before the others.
        load_checkpoint: The model saved at so many env steps.
        load_last_checkpoint: The last model saved on the way.

    Returns:
        The choice; without any flag the final model.

    Raises:
        ConfigError: The last one saved on the way is asked for and there is none.
    """
    if load_best:
        return "best"
    if load_checkpoint is not None:
        return load_checkpoint
    if not load_last_checkpoint:
        return "final"
    saved = list_checkpoints(run)
    if not saved:
        raise ConfigError(f"no checkpoint (rl_model_<steps>_steps.zip) in {str(run)!r}: {_models(run)}")
    return max(saved)


def find_model(run: Path, env_id: str, which: Which = "final") -> Path:
    """Finds a model's file in a run folder.

    Args:
        run: The run folder.
        env_id: The environment's id.
        which: Which of the run's models.

    Returns:
        The path of the `.zip` file.

    Raises:
        ConfigError: There is no such file; the message lists the models there are.
    """
    name = {"final": f"{env_folder_name(env_id)}.zip", "best": "best_model.zip"}.get(str(which), f"rl_model_{which}_steps.zip")
    path = run / name
    if not path.is_file():
        raise ConfigError(f"no {name} in {str(run)!r}: {_models(run)}")
    return path


def check_model_file(path: str, where: str) -> None:
    """Checks that a path leads to something that can be a model, before anything costly is built for it.

    Args:
        path: The path as given.
        where: The flag it was given to.

    Raises:
        ConfigError: The name does not end in `.zip`, there is no such file, or it is no zip archive.
    """
    if not path.endswith(".zip"):
        raise ConfigError(f"{where} {path!r}: a model's file name ends in .zip")
    if not Path(path).is_file():
        raise ConfigError(f"{where} {path!r}: no such file")
    if not zipfile.is_zipfile(path):
        raise ConfigError(f"{where} {path!r}: not a zip archive, or a broken one")


def find_settings(run: Path, env_id: str | None = None) -> Path:
    """Finds the sub-folder of a run that holds its settings (`args.yml`, `config.yml`) and statistics.

    Args:
        run: The run folder.
        env_id: The environment's id; it decides where models of several environments lie in one folder.

    Returns:
        The sub-folder, named after the environment.

    Raises:
        ConfigError: The run folder is not there, or not exactly one of its sub-folders holds settings.
    """
    if run.suffix == ".zip":
        raise ConfigError(f"{str(run)!r} is a model: give its run folder, {str(run.parent)!r}")
    if not run.is_dir():
        raise ConfigError(f"no run folder {str(run)!r}: {_listing('beside it are', _folders(run.parent))}")
    inside = "*" if env_id is None else glob.escape(env_folder_name(env_id))
    found = sorted({path.parent for name in ("args.yml", "config.yml") for path in run.glob(f"{inside}/{name}")})
    if len(found) != 1:
        what = "several folders" if found else "no folder"
        raise ConfigError(f"{str(run)!r} is not a run folder: {what} with args.yml or config.yml in it")
    return found[0]


def _answers(run: RunName, exp_id: int | str) -> bool:
    if isinstance(exp_id, int):
        return run.number == exp_id
    word = exp_id.lower()
    return (bool(run.uuid) and run.uuid.lower().startswith(word)) or word in (run.exp_id.lower(), run.path.name.lower())


def _folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _near(name: str, names: Iterable[str]) -> str:
    """Asks for the nearest of some names, if one is near."""
    spelt = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), spelt, n=1, cutoff=0.6)
    return f"did you mean {spelt[near[0]]!r}? " if near else ""


def _models(run: Path) -> str:
    """Names the models in a run folder, those saved on the way last, and the flag for the newest of them."""
    on_the_way = [path.name for path in list_checkpoints(run).values()]
    others = sorted({path.name for path in run.glob("*.zip")} - {*on_the_way}) if run.is_dir() else []
    hint = "; --load-last-checkpoint takes the newest" if on_the_way else ""
    return _listing("models there are", [*others, *reversed(on_the_way)]) + hint


def _listing(lead: str, names: Iterable[str]) -> str:
    listed = list(names)
    if not listed:
        return f"{lead} none" if lead != "it holds" else "it holds no folders"
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"{lead} {', '.join(listed[:_SHOWN])}{more}"
