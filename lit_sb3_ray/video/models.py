"""The models of a run that can be recorded: what they are called in file names and captions, and their order."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import Which, algo_folder_name, env_folder_name, find_model, list_checkpoints
from lit_sb3_ray.untrusted.models import read_data

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SavedModel:
    """One model of a run.

    Attributes:
        which: Which one, as `load_run` takes it.
        steps: Env steps it was trained for.
        prefix: How the names of its videos begin, as rl_zoo3 has it: such as `final-model-ppo-CartPole-v1`.
    """

    which: Which
    steps: int
    prefix: str

    @property
    def caption(self) -> str:
        """What is written above its pictures."""
        kind = "checkpoint" if isinstance(self.which, int) else f"{self.which} model"
        return f"{kind}, {self.steps:,} steps"


def saved_model(run: Path, algo: str, env_id: str, which: Which) -> SavedModel:
    """Finds one model of a run.

    Args:
        run: The run folder.
        algo: The run's algorithm.
        env_id: The run's environment.
        which: Which model.

    Raises:
        ConfigError: There is no such model, or it is damaged.
    """
    path = find_model(run, env_id, which)
    kind = f"checkpoint-{which}" if isinstance(which, int) else f"{which}-model"
    steps = which if isinstance(which, int) else trained_steps(path)
    return SavedModel(which, steps, f"{kind}-{algo_folder_name(algo)}-{env_folder_name(env_id)}")


def saved_models(run: Path, algo: str, env_id: str) -> list[SavedModel]:
    """Lists all models of a run; one that is damaged is told by a warning, and left out.

    Args:
        run: The run folder.
        algo: The run's algorithm.
        env_id: The run's environment.

    Returns:
        The models by env steps; of those with equally many the one saved on the way first, then the best, then the final one.

    Raises:
        ConfigError: There is none that is whole.
    """
    choices: list[Which] = list(list_checkpoints(run))
    if (run / "best_model.zip").is_file():
        choices.append("best")
    # Without any model this raises, as there is no final one, and lists what there is instead.
    if not choices or (run / f"{env_folder_name(env_id)}.zip").is_file():
        choices.append("final")
    models, damaged = [], []
    for which in choices:
        try:
            trained_steps(find_model(run, env_id, which))
            models.append(saved_model(run, algo, env_id, which))
        except ConfigError as error:
            damaged.append(error)
    if not models:
        raise damaged[0]
    for problem in damaged:
        logger.warning("%s: left out", problem)
    return sorted(models, key=lambda model: model.steps)


def trained_steps(path: Path) -> int:
    """Reads how long a model was trained, without loading it.

    Args:
        path: A `.zip` file of Stable-Baselines3.

    Returns:
        Env steps.

    Raises:
        ConfigError: It is no such file, or a damaged one.
    """
    steps = read_data(path).get("num_timesteps")
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise ConfigError(f"{str(path)!r} is no model of Stable-Baselines3, or a damaged one: its num_timesteps is {steps!r}")
    return steps
