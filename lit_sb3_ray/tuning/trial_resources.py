"""What a trial asks Ray for, and how many fit at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray import tune

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.nodes import node_resources

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.study_options import StudyOptions


def trial_request(options: StudyOptions, actor_cpus: float) -> tune.PlacementGroupFactory:
    """Builds the resources of one trial.

    Args:
        options: CPUs and GPUs of its learner.
        actor_cpus: CPUs of all its env actors together; 0 when it has none.

    Returns:
        A group whose first bundle is the learner's; on one node, since env actors share memory with it.
    """
    learner = {"CPU": options.cpus_per_trial, "GPU": options.gpus_per_trial}
    bundles = [{name: amount for name, amount in learner.items() if amount > 0}]
    if actor_cpus > 0:
        bundles.append({"CPU": actor_cpus})
    return tune.PlacementGroupFactory(bundles, strategy="STRICT_PACK" if actor_cpus else "PACK")


def trials_at_once(request: tune.PlacementGroupFactory, n_jobs: int | None) -> int:
    """Counts the trials that run at the same time.

    Args:
        request: What one trial asks for.
        n_jobs: The most that the user wants; None for as many as fit.

    Raises:
        ConfigError: Not even one fits on any node; the message has the numbers.
    """
    needed = request.required_resources
    nodes = node_resources()
    fit = sum(min(int(node.get(name, 0.0) / amount + 1e-6) for name, amount in needed.items()) for node in nodes)
    if fit < 1:
        asked = ", ".join(f"{amount:g} {name}" for name, amount in needed.items())
        largest = ", ".join(f"{max((node.get(name, 0.0) for node in nodes), default=0.0):g} {name}" for name in needed)
        raise ConfigError(
            f"a trial needs {asked}, and no node of Ray has more than {largest}: "
            "lower --cpus-per-trial, --gpus-per-trial or the number of environments"
        )
    return fit if n_jobs is None or n_jobs < 1 else n_jobs
