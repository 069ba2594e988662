"""What steps an experiment's environments: this process, or Ray actors with how many CPUs.

Training and evaluation environments are planned together, since both are there at the same time.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.lit.refusals import reason
from lit_sb3_ray.scale.placement import STRICT_PACK, check_placement
from lit_sb3_ray.scale.processors import Cores, usable_cpus
from lit_sb3_ray.vec.choosing import RAY_START_S, Prospect, choose, measure
from lit_sb3_ray.vec.grouping import EnvsPerActor, Grouping
from lit_sb3_ray.vec.patience import LONGEST_S

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.environments import ExperimentEnvs
    from lit_sb3_ray.experiment.settings import ExperimentSettings
    from lit_sb3_ray.scale.resources import Request

logger = logging.getLogger(__name__)

VEC_ENV_TYPES = ("auto", "dummy", "ray", "subproc")
_REMEDY = "raise --envs-per-actor, or lower --env-cpus, --n-envs or --n-eval-envs"
# Ray counts CPUs in ten-thousandths.
_LEAST_CPUS = 1e-4
# Length of an evaluation's episodes where the environment has no limit.
_EPISODE_STEPS = 500


@dataclass(frozen=True)
class Stepping:
    """What steps some environments.

    Attributes:
        vec_env_cls: The class.
        kwargs: What it takes beside the functions that build them.
    """

    vec_env_cls: type[VecEnv]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class EnvSet:
    """Environments that are stepped together.

    Attributes:
        n_envs: How many.
        is_evaluation: Whether they are evaluation's or training's.
    """

    n_envs: int
    is_evaluation: bool


def check_stepping(settings: ExperimentSettings) -> None:
    """Refuses settings of env actors that have no meaning, and tells of those that have none here.

    Raises:
        ConfigError: One of them is wrong.
    """
    if settings.vec_env_type not in VEC_ENV_TYPES:
        raise unknown("vec_env_type", settings.vec_env_type, VEC_ENV_TYPES)
    check_placement(settings.placement)
    per_actor, cpus, timeout = settings.envs_per_actor, settings.env_cpus, settings.env_timeout
    if per_actor not in (None, "auto") and (type(per_actor) is not int or per_actor < 1):
        raise ConfigError(f"envs_per_actor must be 'auto' or a positive integer, not {per_actor!r}")
    if cpus is not None and not (_LEAST_CPUS <= cpus < math.inf):
        raise ConfigError(f"env_cpus must be a number of CPUs, {_LEAST_CPUS} or more, not {cpus!r}")
    if timeout is not None and not (0 < timeout <= LONGEST_S):
        raise ConfigError(f"env_timeout must be a positive number of seconds, not {timeout!r}")
    if type(settings.max_env_restarts) is not int or settings.max_env_restarts < 0:
        raise ConfigError(f"max_env_restarts must be a whole number, 0 or more, not {settings.max_env_restarts!r}")
    if settings.vec_env_type == "dummy" and of_actors(vars(settings)):
        idle = ", ".join(of_actors(vars(settings)))
        logger.warning("%s has no effect: vec_env_type 'dummy' has no actors", idle)


def of_actors(settings: Mapping[str, Any]) -> list[str]:
    """Names those of some settings that were given and are for env actors alone."""
    return [name for name in ("envs_per_actor", "env_cpus", "env_timeout") if settings.get(name) is not None]


def env_sets(manager: ExperimentEnvs) -> tuple[EnvSet, ...]:
    """Lists the environments that an experiment has at the same time."""
    training = EnvSet(manager.n_envs, is_evaluation=False)
    # A trial evaluates whatever its eval_freq is.
    evaluates = (manager.eval_freq > 0 and not manager.async_eval) or manager.trial_hyperparams is not None
    return (training, EnvSet(manager.n_eval_envs, is_evaluation=True)) if evaluates else (training,)


def plan(manager: ExperimentEnvs, sets: Sequence[EnvSet], others: Sequence[Request] = ()) -> dict[EnvSet, Stepping]:
    """Decides what steps environments, and counts what all of their actors need, before any is started.

    Args:
        manager: The experiment.
        sets: Its environments.
        others: Further actors that it will start, beside that for its evaluations.

    Returns:
        What steps each set.

    Raises:
        ConfigError: Ray can never have the CPUs; the message has the numbers. Or a cluster that was named does not answer.
    """
    if manager.default_vec_env_cls is not None:
        return dict.fromkeys(sets, Stepping(manager.default_vec_env_cls, manager.vec_env_kwargs))
    if manager.vec_env_type == "dummy":
        groupings: dict[EnvSet, Grouping | None] = dict.fromkeys(sets)
    elif manager.vec_env_type == "auto" and manager.env_timeout is None:
        groupings = _chosen(manager, sets)
    else:
        groupings = _asked_for(manager, sets)
    _tell_idle(manager, groupings)
    return _in_actors(manager, groupings, [*others, *_evaluation(manager, sets), *_learners(manager, sets)])


def named(manager: ExperimentEnvs) -> str:
    """Says what will step the training environments, as far as that is known before an environment is built."""
    given = {
        "envs_per_actor": manager.envs_per_actor,
        "env_cpus": manager.env_cpus,
        "env_timeout": manager.env_timeout,
        "max_env_restarts": manager.max_env_restarts,
    }
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    if manager.default_vec_env_cls is not None:
        return manager.default_vec_env_cls.__name__
    if manager.vec_env_type in ("ray", "subproc") or (manager.vec_env_type == "auto" and manager.env_timeout is not None):
        return f"RayVecEnv({arguments})"
    if manager.vec_env_type == "auto" and manager.n_envs > 1:
        return f"DummyVecEnv or RayVecEnv({arguments}), by the time that a step of the environment takes"
    return "DummyVecEnv"


def env_actor_cpus(manager: ExperimentEnvs, most: float) -> float:
    """Counts the CPUs to be reserved for the env actors of an experiment that will run in a placement group.

    Args:
        manager: The experiment, its hyperparameters known.
        most: CPUs that a node has beside the learner's. Unless the user has settled the number or the size of the actors, they
            make do with that.

    Returns:
        The CPUs of all env actors together; 0 for environments in the learner's process.
    """
    in_actors = manager.vec_env_type in ("ray", "subproc") or manager.env_timeout is not None
    if manager.default_vec_env_cls is not None or manager.vec_env_type == "dummy" or not in_actors:
        return 0.0
    total = env_actors(manager) * (manager.env_cpus or 1.0)
    is_settled = manager.env_cpus is not None or isinstance(manager.envs_per_actor, int)
    return total if is_settled else min(total, float(math.floor(most)))


def env_actors(manager: ExperimentEnvs) -> int:
    """Counts the env actors that an experiment has at most, those of evaluation included."""
    per_actor, sets = manager.envs_per_actor, env_sets(manager)
    if isinstance(per_actor, int):
        return sum(-(-envs.n_envs // per_actor) for envs in sets)
    # One share of each set stays with the learner, unless its steps have a time limit.
    return sum(envs.n_envs - (manager.env_timeout is None) for envs in sets)


def _chosen(manager: ExperimentEnvs, sets: Sequence[EnvSet]) -> dict[EnvSet, Grouping | None]:
    """Measures the environment and chooses for each set; an environment alone stays in this process."""
    groupings: dict[EnvSet, Grouping | None] = dict.fromkeys(sets)
    several = [envs for envs in sets if envs.n_envs > 1]
    cores = _cores(here=manager.placement == STRICT_PACK).shared(manager.devices) if several else Cores(1)
    if not several or (cores.here + cores.elsewhere < 2 and manager.envs_per_actor in (None, "auto")):
        return groupings
    try:
        step_s = measure(manager.env_spec(eval_env=several[0].is_evaluation).factories(1, manager.seed)[0])
    except (
        Exception,
        SystemExit,
    ) as error:  # It may raise anything; if it is no accident, the run meets the same error, whole.
        _tell(manager, f"the environment cannot be measured, so all stay in this process: {reason(error)}")
        return groupings
    start_s = 0.0 if _is_connected() else RAY_START_S
    for envs in several:
        prospect = Prospect(envs.n_envs, _steps(manager, envs), cores, _per_actor(manager), inline=True, start_s=start_s)
        choice = choose(step_s, prospect)
        groupings[envs] = choice.grouping
        _tell(manager, f"{'Evaluation' if envs.is_evaluation else 'Training'}: {choice.reason}")
        if choice.grouping is not None:
            start_s = 0.0
    return groupings


def _tell_idle(manager: ExperimentEnvs, groupings: Mapping[EnvSet, Grouping | None]) -> None:
    """Tells of settings of env actors that were given in vain, since it was found best to have no actor."""
    idle = ", ".join(of_actors(vars(manager)))
    if manager.vec_env_type == "dummy" or not idle or any(grouping and grouping.actors for grouping in groupings.values()):
        return
    # A study would tell it of every trial.
    level = logging.WARNING if manager.trial_hyperparams is None else logging.DEBUG
    logger.log(level, "vec_env %s: %s has no effect, since no environment is in an actor", manager.vec_env_type, idle)


def _asked_for(manager: ExperimentEnvs, sets: Sequence[EnvSet]) -> dict[EnvSet, Grouping | None]:
    from lit_sb3_ray.scale.connection import connect
    from lit_sb3_ray.vec.planning import plan_grouping

    if manager.env_timeout is not None or any(envs.n_envs > 1 for envs in sets) or manager.envs_per_actor is not None:
        connect(manager.ray_settings)
    options = (_per_actor(manager), manager.env_timeout, manager.placement)
    return {envs: plan_grouping(envs.n_envs, *options) for envs in sets}


def _in_actors(
    manager: ExperimentEnvs, groupings: Mapping[EnvSet, Grouping | None], others: Sequence[Request]
) -> dict[EnvSet, Stepping]:
    """Grants all actors their CPUs and says with what arguments they are started."""
    actors = {envs: len(grouping.actors) for envs, grouping in groupings.items() if grouping is not None}
    cpus: dict[EnvSet, float | None] = dict.fromkeys(groupings)
    if sum(actors.values()) or others:
        from lit_sb3_ray.scale.connection import connect
        from lit_sb3_ray.scale.resources import Request, cpu_supply, grant

        connect(manager.ray_settings)
        asking = [envs for envs, count in actors.items() if count]
        requests = [
            Request(f"env actors for {'evaluation' if envs.is_evaluation else 'training'}", count, manager.env_cpus)
            for envs in asking
            for count in [actors[envs] * (1 if envs.is_evaluation else manager.devices)]
        ]
        # What evaluates beside the training may be on another node.
        supply = cpu_supply(here=manager.placement == STRICT_PACK and not others)
        remedy = _REMEDY if manager.devices == 1 else f"lower --devices or --num-threads, {_REMEDY}"
        granted = grant([*requests, *others], supply, remedy)
        cpus.update(zip(asking, granted[: len(asking)], strict=True))
    return {envs: _stepping(manager, grouping, cpus[envs]) for envs, grouping in groupings.items()}


def _evaluation(manager: ExperimentEnvs, sets: Sequence[EnvSet]) -> list[Request]:
    """The actor that evaluations go on in beside the training, if they do."""
    if not manager.async_eval or manager.eval_freq < 1 or all(envs.is_evaluation for envs in sets):
        return []
    from lit_sb3_ray.experiment.evaluation_actor import evaluation_request

    return [evaluation_request()]


def _learners(manager: ExperimentEnvs, sets: Sequence[EnvSet]) -> list[Request]:
    """The learners beside this process, if there are any."""
    if manager.devices == 1 or all(envs.is_evaluation for envs in sets):
        return []
    from lit_sb3_ray.scale.resources import Request

    return [Request("learners", manager.devices - 1, float(max(1, manager.num_threads)))]


def _stepping(manager: ExperimentEnvs, grouping: Grouping | None, cpus: float | None) -> Stepping:
    if grouping is None:
        return Stepping(DummyVecEnv, manager.vec_env_kwargs)
    from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

    settings = {
        "grouping": grouping,
        "num_cpus_per_actor": cpus,
        "step_timeout": manager.env_timeout,
        "max_restarts": manager.max_env_restarts,
        "placement": manager.placement,
    }
    return Stepping(RayVecEnv, {**settings, **manager.vec_env_kwargs})


def _per_actor(manager: ExperimentEnvs) -> EnvsPerActor:
    return cast("EnvsPerActor", manager.envs_per_actor or "auto")


def _steps(manager: ExperimentEnvs, envs: EnvSet) -> int:
    """Counts the env steps to come: those of training are known, those of evaluations at most."""
    total = manager.hyperparams.n_timesteps
    left = max(0, total - (0 if manager.checkpoint is None else int(manager.checkpoint.name)))
    if not envs.is_evaluation:
        return left
    # A trial is evaluated as its study says, which it does not know; once at least.
    evaluations = 1 + (left // manager.eval_freq if manager.eval_freq > 0 else 0)
    limit = manager.env_spec(eval_env=True).check().max_episode_steps
    return evaluations * manager.n_eval_episodes * (limit or _EPISODE_STEPS)


def _is_connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _cores(*, here: bool) -> Cores:
    """The processors for environments: what Ray has free if this process is connected to one, else what this machine has."""
    if not _is_connected():
        return Cores(usable_cpus())
    from lit_sb3_ray.scale.resources import cpu_supply, free_cores

    return free_cores(cpu_supply(here=here))


def _tell(manager: ExperimentEnvs, text: str) -> None:
    # A study would tell it of every trial.
    logger.log(logging.INFO if manager.trial_hyperparams is None else logging.DEBUG, "vec_env auto: %s", text)
