"""What a trial asks Ray for, and how many fit at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ray import tune

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.placement import PACK, STRATEGIES, STRICT_PACK, fitting

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.study_options import StudyOptions

# More trials at a time than a driver can look after.
MOST_AT_ONCE = 10_000


def trial_request(
    options: StudyOptions, actor_cpus: float, actors: int, placement: str | None, nodes: Sequence[Mapping[str, float]]
) -> tune.PlacementGroupFactory:
    """Builds the resources of one trial.

    Args:
        options: CPUs and GPUs of its learner.
        actor_cpus: CPUs of all its env actors together; 0 when it has none.
        actors: How many env actors it has.
        placement: One of `STRATEGIES`; None for one node, where env actors share memory with the learner, if one has the room.
        nodes: What each node has.

    Returns:
        A group whose first bundle is the learner's. On one node all env actors have one bundle, on several a bundle each.
    """
    asked = {"CPU": options.cpus_per_trial, "GPU": options.gpus_per_trial}
    learner = {name: amount for name, amount in asked.items() if amount > 0}
    if actor_cpus <= 0:
        return tune.PlacementGroupFactory([learner], strategy="PACK")
    whole = {**learner, "CPU": options.cpus_per_trial + actor_cpus}
    is_small = any(all(node.get(name, 0.0) >= amount - 1e-6 for name, amount in whole.items()) for node in nodes)
    if placement == STRICT_PACK or (placement is None and is_small):
        return tune.PlacementGroupFactory([learner, {"CPU": actor_cpus}], strategy="STRICT_PACK")
    each = [{"CPU": actor_cpus / actors}] * actors
    return tune.PlacementGroupFactory([learner, *each], strategy=STRATEGIES[placement or PACK])


def trials_at_once(
    request: tune.PlacementGroupFactory, n_jobs: int | None, nodes: Sequence[Mapping[str, float]], may_grow: bool = False
) -> int:
    """Counts the trials that run at the same time.

    Args:
        request: What one trial asks for.
        n_jobs: The most that the user wants; None for as many as fit.
        nodes: What each node has.
        may_grow: Whether nodes may be added, which then will have what is asked for. An autoscaler adds them for what waits:
            `n_jobs` trials are then begun whether they fit or not, and without it one more than fits.

    Raises:
        ConfigError: Not even one fits; the message has the numbers.
    """
    fit = count_fitting(request, n_jobs, nodes)
    if may_grow:
        return n_jobs or min(fit + 1, MOST_AT_ONCE)
    if fit < 1:
        raise _too_large(request, nodes)
    return min(fit, n_jobs or fit)


def count_fitting(request: tune.PlacementGroupFactory, n_jobs: int | None, nodes: Sequence[Mapping[str, float]]) -> int:
    """Counts the trials that have room at the same time; for those of several nodes it does not count beyond `n_jobs`."""
    if not _is_on_one_node(request):
        return fitting(request.bundles, nodes, n_jobs or MOST_AT_ONCE)
    needed = request.required_resources
    return sum(min(int(node.get(name, 0.0) / amount + 1e-6) for name, amount in needed.items()) for node in nodes)


def _is_on_one_node(request: tune.PlacementGroupFactory) -> bool:
    return request.strategy == "STRICT_PACK" or len(request.bundles) == 1


def _too_large(request: tune.PlacementGroupFactory, nodes: Sequence[Mapping[str, float]]) -> ConfigError:
    needed, where = request.required_resources, "no node of Ray has more than"
    if not _is_on_one_node(request):
        nodes, where = [{name: sum(node.get(name, 0.0) for node in nodes) for name in needed}], "all of Ray's nodes have"
    asked = ", ".join(f"{amount:g} {name}" for name, amount in needed.items())
    largest = ", ".join(f"{max((node.get(name, 0.0) for node in nodes), default=0.0):g} {name}" for name in needed)
    return ConfigError(
        f"a trial needs {asked}, and {where} {largest}: lower --cpus-per-trial, --gpus-per-trial or the number of environments"
    )
