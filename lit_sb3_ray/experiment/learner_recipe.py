"""What the learners beside the first are made of: the recipe that all of them get, and what a checkpoint holds of each.

Nothing heavy is imported at the top, as in `learner`: the actor reads this before it has settled what libraries read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec as GymSpec
    from stable_baselines3.common.base_class import BaseAlgorithm

    from lit_sb3_ray.config.hyperparams import Hyperparams
    from lit_sb3_ray.envs.spec import EnvSpec
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.experiment.stepping import Stepping

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LearnerRecipe:
    """What the learners beside the first are made of, alike for all of them.

    Attributes:
        spec: Recipe of one env.
        registered: gymnasium's recipe of it, which may be registered in the first learner's process alone.
        stack: The vectorised wrappers, as `build_vec_env` takes them.
        stepping: What steps the envs.
        hyperparams: The learner's share of the run's.
        warm: The first learner's model as SB3 saves it, which has settings of the model that training starts from; None where
            the hyperparameters say it all.
        env_seed: Seed of the run's first env.
        seed: The run's.
        device: torch device, or `auto`.
        num_threads: torch's threads.
        trainer: Further arguments of `RLTrainer`.
        is_resumed: Whether the run goes on from a checkpoint.
        buffer_limit: Largest replay buffer that a checkpoint holds, in GiB.
    """

    spec: EnvSpec
    registered: GymSpec
    stack: Mapping[str, Any]
    stepping: Stepping
    hyperparams: Hyperparams
    warm: bytes | None
    env_seed: int
    seed: int
    device: str
    num_threads: int
    trainer: Mapping[str, Any]
    is_resumed: bool
    buffer_limit: float


@dataclass(frozen=True)
class Legacy:
    """What a checkpoint holds of one learner.

    Attributes:
        state: Its own state, see `lit.own_state`.
        buffer: Its replay buffer's file, if there is one.
    """

    state: bytes
    buffer: Path | None


def learner_recipe(manager: ExperimentManager, model: BaseAlgorithm, *, on_gpus: bool) -> LearnerRecipe:
    """Writes the recipe of an experiment's learners.

    Args:
        manager: The experiment, set up.
        model: The first learner's model.
        on_gpus: Whether each learner has a GPU of its own.
    """
    from lit_sb3_ray.experiment.checkpoints import CheckpointPlan
    from lit_sb3_ray.experiment.devices import threads_of_each
    from lit_sb3_ray.experiment.stepping import EnvSet
    from lit_sb3_ray.lit.iteration import takes_masks

    spec = manager.env_spec(eval_env=False)
    options = {
        "max_steps": manager.hyperparams.n_timesteps,
        "log_interval": None,
        "use_masking": takes_masks(model) and manager.uses_masking(model.get_env()),
        "fast": manager.fast,
        "precision": manager.precision,
        "logger": False,
    }
    return LearnerRecipe(
        spec=spec,
        registered=spec.check(),
        stack=manager._env_stack(eval_env=False),
        stepping=manager._stepping_of(EnvSet(manager.n_envs, is_evaluation=False)),
        hyperparams=manager.hyperparams,
        warm=_saved(model) if manager.is_warm_start else None,
        env_seed=manager._env_seed(),
        seed=manager.seed,
        device="cuda" if on_gpus else "cpu",
        num_threads=threads_of_each(manager),
        trainer=options,
        is_resumed=manager.checkpoint is not None,
        buffer_limit=CheckpointPlan().buffer_limit,
    )


def _saved(model: BaseAlgorithm) -> bytes:
    buffer: Any = getattr(model, "replay_buffer", None)
    if buffer is not None and buffer.size() > 0:
        logger.warning("the replay buffer beside -i is the first learner's: the others begin with empty ones")
    with BytesIO() as file:
        model.save(file)
        return file.getvalue()


def check_number(checkpoint: Path | None, devices: int) -> None:
    """Refuses to go on with a run with another number of learners, each of which has a state, and a buffer, of its own.

    Args:
        checkpoint: The one to go on from; None for a new run.
        devices: How many learners.

    Raises:
        ConfigError: The run has had more of them, or fewer.
    """
    from lit_sb3_ray.lit.own_state import state_file

    if checkpoint is None:
        return
    had = 1 + len(list(checkpoint.glob(state_file("*"))))
    if had != devices:
        raise ConfigError(f"--devices {devices} contradicts --resume: the run {checkpoint.parents[1]} has {had} of them")


def legacy_of(rank: int, checkpoint: Path | None, model: BaseAlgorithm) -> Legacy | None:
    """Finds what a checkpoint holds of a learner.

    Args:
        rank: The learner's.
        checkpoint: The one to go on from; None for a new run.
        model: The first learner's model.

    Returns:
        What there is; None for nothing.
    """
    from lit_sb3_ray.lit.own_state import buffer_file, state_file

    if checkpoint is None or not (checkpoint / state_file(rank)).exists():
        return None
    state, buffer = (checkpoint / state_file(rank)).read_bytes(), (checkpoint / buffer_file(rank)).absolute()
    if not buffer.exists() and getattr(model, "replay_buffer", None) is not None:
        logger.warning("checkpoint %s has no replay buffer of learner %d: it goes on with an empty one", checkpoint, rank)
    return Legacy(state, buffer if buffer.exists() else None)
