"""One trial of a study that somebody else carries out: Optuna's own `optimize`, in this process, with its own pruner."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from optuna import TrialPruned

from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.drawing import draw, space_of
from lit_sb3_ray.tuning.objectives import objective_value
from lit_sb3_ray.tuning.rows import TIMESTEPS
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.trial import TrialRun
from lit_sb3_ray.tuning.trial_maker import TrialMaker

if TYPE_CHECKING:
    from optuna import Trial

    from lit_sb3_ray.experiment.manager import ExperimentManager


def objective(manager: ExperimentManager, trial: Trial) -> float:
    """Carries one trial of an Optuna study out in this process.

    Args:
        manager: The study's manager.
        trial: The trial.

    Returns:
        What the trial is worth by the manager's `trial_objective`.

    Raises:
        TrialPruned: The study's pruner has ended it.
        TrialStopped: A signal has ended it; it is a `KeyboardInterrupt`.
        ConfigError: The hyperparameters do not suit the env.
        NonFiniteError: The training has diverged.
    """
    made = TrialMaker.of(manager)(draw(manager, space_of(manager), trial), manager.seed)
    marks = evaluation_marks(manager.hyperparams.n_timesteps, manager.n_evaluations, manager.pruner)
    folder = Path(manager.optimization_log_path) / f"trial_{trial.number}" if manager.optimization_log_path else None
    values: dict[int, float] = {}
    with SignalStop(StopGuard()) as stop, closing(TrialRun(made, marks, stop, folder)) as run:
        while not run.done:
            point = run.advance()
            values[point.mark] = point.mean_reward
            trial.report(point.mean_reward, point.mark)
            trial.set_user_attr(TIMESTEPS, point.num_timesteps)
            # A trial that has used its budget is complete, whatever the pruner thinks of it.
            if not run.done and trial.should_prune():
                raise TrialPruned
    return objective_value(manager.trial_objective, values)
