"""When checkpoints are taken, which are kept, and how a run folder is put back to one."""

from __future__ import annotations

import logging
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluations import cut_evaluations, save_model
from lit_sb3_ray.experiment.metrics import cut_metrics
from lit_sb3_ray.experiment.origin import is_trusted
from lit_sb3_ray.experiment.run_folder import BEST, BEST_STATISTICS, RunFolder, pending_files, pending_steps, replace_file
from lit_sb3_ray.lit.checkpoint import MODEL, STATE, Training, link_or_copy, read_state, save_checkpoint

logger = logging.getLogger(__name__)

# What the run's best model was at the boundary that a stop may go back to.
BOUNDARY = ".boundary"


@dataclass(frozen=True)
class CheckpointPlan:
    """When checkpoints are taken and which are kept.

    Attributes:
        freq: Env steps between two; below 1 there are none on the way.
        keep: How many checkpoint folders stay; 0 takes none at all. Models on the way (`rl_model_*`) all stay.
        buffer_limit: Largest replay buffer that a checkpoint holds, in GiB.
    """

    freq: int = -1
    keep: int = 2
    buffer_limit: float = 4.0


class CheckpointSaver:
    """Saves at the first iteration boundary after each so many env steps.

    Attributes:
        others: Writes what a checkpoint holds of further learners, and says where.
    """

    def __init__(self, run: RunFolder, plan: CheckpointPlan, extra: Callable[[], dict[str, Any]]) -> None:
        """Prepares saving.

        Args:
            run: Where to.
            plan: When, and what stays.
            extra: Gives the run's own entries of a checkpoint.
        """
        self.run = run
        self.plan = plan
        self.extra = extra
        self.others: Callable[[], list[Path]] = list
        self.next_at = 0

    def mark(self) -> dict[str, Any]:
        """Notes at a boundary what a checkpoint would hold of the run folder, in case a stop goes back there.

        Returns:
            The run's own entries of that checkpoint.
        """
        if self.plan.keep > 0:
            noted = self.run.checkpoints / BOUNDARY
            noted.mkdir(parents=True, exist_ok=True)
            for old in pending_files(noted):
                old.unlink()
            for file in _noted_files(self.run.path):
                link_or_copy(file, noted / file.name)
        return self.extra()

    def begin(self, num_timesteps: int) -> None:
        """Sets the first step to save at.

        Args:
            num_timesteps: Env steps at which training starts.
        """
        self.next_at = self._after(num_timesteps)

    def save_if_due(self, session: Training) -> bool:
        """Saves the model and a checkpoint if it is time.

        Args:
            session: The training, at an iteration boundary.

        Returns:
            Whether it was time.
        """
        steps = session.algorithm.num_timesteps
        if self.plan.freq < 1 or steps < self.next_at:
            return False
        self.next_at = self._after(steps)
        save_model(session.algorithm, self.run.step_model(steps), self.run.step_statistics(steps))
        self.save(session)
        return True

    def save(self, session: Training, marked: dict[str, Any] | None = None) -> Path | None:
        """Takes a checkpoint now, unless there is one of this env step and its evaluations are done, and lets old ones go.

        Args:
            session: The training, at an iteration boundary.
            marked: What `mark` returned there, if training has gone back to that boundary; None if it goes on from here.

        Returns:
            The checkpoint, or None when none are kept.
        """
        if self.plan.keep < 1:
            return None
        folder = self.run.checkpoints / str(session.algorithm.num_timesteps)
        if folder not in list_checkpoints(self.run) or (marked is None and pending_files(folder)):
            home = self.run.path if marked is None else self.run.checkpoints / BOUNDARY
            extra = self.extra() if marked is None else marked
            save_checkpoint(folder, session, extra, self.plan.buffer_limit, [*_noted_files(home), *self.others()])
            logger.info("Checkpoint %s", folder)
        for old in list_checkpoints(self.run)[: -self.plan.keep]:
            # Out of sight first: a crash would leave a part of it, which looks like a whole one.
            shutil.rmtree(old.rename(old.with_name(f".{old.name}.old")))
        shutil.rmtree(self.run.checkpoints / BOUNDARY, ignore_errors=True)
        return folder

    def _after(self, num_timesteps: int) -> int:
        return (num_timesteps // self.plan.freq + 1) * self.plan.freq if self.plan.freq > 0 else 0


def _noted_files(folder: Path) -> list[Path]:
    """The files of a run that a checkpoint holds: the best model, and copies whose evaluations are not recorded."""
    return [folder / BEST, folder / BEST_STATISTICS, *pending_files(folder)]


def list_checkpoints(run: RunFolder) -> list[Path]:
    """The run's whole checkpoints, oldest first."""
    if not run.checkpoints.is_dir():
        return []
    found = [path for path in run.checkpoints.iterdir() if path.name.isdigit() and (path / STATE).exists()]
    return sorted(found, key=lambda path: int(path.name))


def latest_checkpoint(run: RunFolder) -> Path:
    """The checkpoint to go on from: the last one, or where its files are broken the one before.

    Raises:
        ConfigError: There is none, or none that is whole; or the run was downloaded, and going on would run what is in it.
    """
    if not is_trusted(run.settings):
        raise ConfigError(
            f"{str(run.path)!r} was downloaded, and to go on with a checkpoint is to run what its maker has put into it: "
            "start a run of your own from its model, with -i"
        )
    found = list_checkpoints(run)
    if not found:
        raise ConfigError(
            f"{str(run.path)!r} has no checkpoint to go on from: checkpoints are taken with --save-freq, when a signal stops "
            "the run, and at its end; a finished model can be a warm start with -i"
        )
    problems = []
    for checkpoint in reversed(found):
        problem = _problem(checkpoint)
        if problem is None:
            return checkpoint
        logger.warning("Checkpoint %s is passed over: %s", checkpoint.name, problem)
        problems.append(problem)
    raise ConfigError(f"{str(run.path)!r} has no whole checkpoint to go on from: {problems[0]}")


def _problem(checkpoint: Path) -> str | None:
    """Why a checkpoint cannot be gone on from; None if nothing speaks against it."""
    try:
        read_state(checkpoint)
    except ConfigError as error:
        return str(error)
    return None if _is_whole(checkpoint / MODEL) else f"{checkpoint / MODEL} is not there, or broken"


def _is_whole(model: Path) -> bool:
    """Whether a zip archive has its beginning and its end; what an own class saves in another format is taken as it is."""
    try:
        with model.open("rb") as file:
            start = file.read(2)
        if start != b"PK":
            return bool(start)
        with zipfile.ZipFile(model) as archive:
            # torch's archives lie uncompressed in SB3's: of one that is cut short, the end of such a part looks like its own.
            return min((item.header_offset for item in archive.infolist()), default=-1) == 0
    except (OSError, zipfile.BadZipFile):
        return False


def rewind(run: RunFolder, checkpoint: Path) -> dict[str, Any]:
    """Puts a run folder back to a checkpoint: what was written later is cut from every file, so that no step appears twice.

    Args:
        run: The run folder.
        checkpoint: One of its checkpoints.

    Returns:
        The run's own entries of the checkpoint.
    """
    state = read_state(checkpoint)
    steps, extra = int(state["num_timesteps"]), dict(state["extra"])
    # What a crash left goes first: the disk may be full of it.
    for left in [*run.path.glob(".*.partial*"), *run.checkpoints.glob(".*"), *pending_files(run.path)]:
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for later in list_checkpoints(run):
        if int(later.name) > int(checkpoint.name):
            shutil.rmtree(later)
    # Evaluations that were not recorded at the checkpoint are done again.
    for copy in pending_files(checkpoint):
        link_or_copy(copy, run.path / copy.name)
    again = pending_steps(checkpoint)
    cut_evaluations(run.evaluations, steps, without=again)
    cut_metrics(run.metrics, steps)
    for file in run.path.glob("csv/version_*/metrics.csv"):
        cut_metrics(file, steps, without=again)
    for model in run.path.glob("rl_model_*_steps.zip"):
        number = model.stem.removeprefix("rl_model_").removesuffix("_steps")
        if number.isdigit() and int(number) > steps:
            run.step_statistics(int(number)).unlink(missing_ok=True)
            model.unlink()
    for name in (BEST, BEST_STATISTICS):
        if (checkpoint / name).exists():
            replace_file(run.path / name, partial(link_or_copy, checkpoint / name))
        else:
            (run.path / name).unlink(missing_ok=True)
    return extra
