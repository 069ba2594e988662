"""Drawing a trial's hyperparameters for a manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stable_baselines3.her import HerReplayBuffer

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.experiment.entries import file_entry
from lit_sb3_ray.tuning.reports.report import best_entry
from lit_sb3_ray.tuning.rows import HYPERPARAMS, SEED, TRAINED, WARM_START
from lit_sb3_ray.tuning.schedule.population import MemberSpace
from lit_sb3_ray.tuning.space.search_space import SearchSpace, find_space

if TYPE_CHECKING:
    from optuna import Trial

    from lit_sb3_ray.experiment.manager import ExperimentManager

SHOWN = ("gamma", "n_steps", "batch_size")


def space_of(manager: ExperimentManager) -> SearchSpace:
    """Finds what a manager's study searches, and tries it.

    Args:
        manager: The study's manager.

    Returns:
        The space without what the command line settles.

    Raises:
        ConfigError: There is no such space, or what can be drawn of it makes no valid hyperparameters.
    """
    buffer = manager.hyperparams.model_kwargs.get("replay_buffer_class")
    her = isinstance(buffer, type) and issubclass(buffer, HerReplayBuffer)
    entry, where = file_entry(manager)
    space = find_space(manager.algo, manager.search_space, her).settle(manager.custom_hyperparams)
    space.check(entry, manager.custom_hyperparams, manager.given_n_envs, where)
    return space


def draw(manager: ExperimentManager, space: SearchSpace | MemberSpace, trial: Trial) -> dict[str, Any]:
    """Draws a trial's parameters, makes hyperparameters of them, and notes these in its row.

    Args:
        manager: The study's manager.
        space: What is searched, or what the members of a population differ in.
        trial: The trial; `gamma`, `n_steps` and `batch_size` become attributes of it, for rl_zoo3's table.

    Returns:
        The hyperparameters, to go between the file's and the command line's; none for the trial that has the file's own.
    """
    space.sample(trial)
    hyperparams: dict[str, Any] = {}
    if isinstance(space, MemberSpace):
        hyperparams = space.hyperparams(trial.params)
    elif not trial.user_attrs.get(WARM_START):
        hyperparams = space.hyperparams(trial.params, manager.entry(), manager.custom_hyperparams, manager.given_n_envs)
    else:
        trial.set_user_attr(TRAINED, space.stated(trial.params, best_entry(manager, {}), manager.given_n_envs))
    trial.set_user_attr(HYPERPARAMS, to_plain(best_entry(manager, hyperparams)))
    trial.set_user_attr(SEED, manager.seed)
    for name in SHOWN:
        if name in hyperparams:
            trial.set_user_attr(name, hyperparams[name])
    return hyperparams
