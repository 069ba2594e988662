"""One whole experiment in a process of its own: trained, saved, evaluated, and gone on with where it was left."""

from __future__ import annotations

import logging
import math
import os
import pickle
import shutil
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.errors import ConfigError, NonFiniteError
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.scale.output import OutputFile
from lit_sb3_ray.scale.process import Process
from lit_sb3_ray.tuning.sweeps.combination import Combination, RunResult, read_result, write_result
from lit_sb3_ray.tuning.sweeps.hub import Reporter, RunStopped

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager

logger = logging.getLogger(__name__)

# A killed driver's runs live on for a moment, and hold their folders.
LOCK_PATIENCE_S = 30.0
_LOOK_AGAIN_S = 0.2


@dataclass(frozen=True)
class Ended:
    """How a run's process has ended its work.

    Attributes:
        result: What the run has come to; None when it is not finished.
        failure: What went wrong, in one line; None when nothing did, and the run was stopped if it has no result.
    """

    result: RunResult | None = None
    failure: str | None = None


class RunActor:
    """A process for one run; everything it prints, and what its libraries print, goes to a file."""

    def __init__(self, output: str) -> None:
        """Lets output go to the file.

        Args:
            output: The file; what is there already stays.
        """
        OutputFile().open(Path(output))
        logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%F %T", stream=sys.stderr, force=True)
        logging.getLogger("lit_sb3_ray").setLevel(logging.INFO)

    def carry_out(self, process: Process, combination: Combination, folder: str, settings: bytes, hub: Any) -> Ended:
        """Trains the run to its end, or until a stop.

        Args:
            process: What this process takes over.
            combination: The run.
            folder: The sweep's folder.
            settings: Arguments of `ExperimentManager` by name, pickled.
            hub: The hub's handle.

        Returns:
            How it has ended; whatever the run itself raises is a failure.
        """
        process.adopt()
        run = combination.run(Path(folder))
        begun = time.monotonic()
        logger.info("%s, in process %d", combination, os.getpid())
        try:
            with Reporter(hub, combination.name, os.getpid()) as reporter:
                return Ended(_finish(run, pickle.loads(settings), reporter, begun))
        except RunStopped:
            logger.info("Stopped")
            return Ended()
        except Exception as error:  # An env or a callback may raise anything, and the sweep goes on without this run.
            traceback.print_exc()
            return Ended(failure=" ".join("".join(traceback.format_exception_only(error)).split()))


def _finish(run: RunFolder, settings: dict[str, Any], reporter: Reporter, begun: float) -> RunResult | None:
    """Carries the run on to its end; None when a stop came first."""
    result = read_result(run)
    if result is not None:
        return result
    manager = _open(run, settings)
    model = manager.setup_experiment()
    assert model is not None, "a run of a sweep is no study"
    reporter.follow(model, manager.hyperparams.n_timesteps, manager.rl_callbacks)
    manager.learn(model)
    manager.save_trained_model(model)
    if manager.stop_signal is not None:
        return None
    # A sweep compares final evaluations, and has them even where none are made on the way.
    manager.eval_freq = max(1, manager.eval_freq)
    evaluated = manager.final_evaluation()
    assert evaluated is not None, "evaluations are on"
    if not math.isfinite(evaluated[0]):
        raise NonFiniteError(f"the final evaluation gives {evaluated[0]}")
    seconds = round(time.monotonic() - begun, 3)
    result = RunResult(*evaluated, manager.n_eval_episodes, int(model.num_timesteps), seconds)
    write_result(run, result)
    logger.info("Mean reward of the final model: %.2f +/- %.2f", *evaluated)
    return result


def _open(run: RunFolder, settings: dict[str, Any]) -> ExperimentManager:
    """Makes the manager: of the run's last checkpoint, or of a new run where there is none."""
    from lit_sb3_ray.experiment.checkpoints import latest_checkpoint
    from lit_sb3_ray.experiment.manager import ExperimentManager

    class Placed(ExperimentManager):
        """An experiment whose run folder is settled beforehand."""

        def _begin(self) -> None:
            super()._begin()
            self._run = run

    if not run.path.exists():
        return Placed(**settings)
    lock = _wait_for_lock(run)
    try:
        logger.info("Going on from checkpoint %s", latest_checkpoint(run))
    except ConfigError as error:
        logger.info("Starting again: %s", error)
        shutil.rmtree(run.path)
        return Placed(**settings)
    finally:
        lock.release()
    return ExperimentManager(**settings, resume=str(run.path))


def _wait_for_lock(run: RunFolder) -> RunLock:
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            return RunLock(run.path)
        except ConfigError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_AGAIN_S)
