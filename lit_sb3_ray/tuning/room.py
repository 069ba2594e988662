"""The place that trials have on Ray, found out before there is anything of a study."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os.path import abspath
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.stepping import env_actor_cpus, env_actors
from lit_sb3_ray.scale.autoscaling import may_grow
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.forecast import coming_nodes
from lit_sb3_ray.scale.nodes import node_resources
from lit_sb3_ray.scale.placement import PACK, SPREAD
from lit_sb3_ray.scale.remote_folder import is_url
from lit_sb3_ray.scale.shared_storage import blind_nodes, check_shared
from lit_sb3_ray.tuning.disk import check_disk
from lit_sb3_ray.tuning.trial_resources import count_fitting, trial_request, trials_at_once

if TYPE_CHECKING:
    from ray import tune

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.experiment.study_options import StudyOptions

logger = logging.getLogger(__name__)

# Ray Tune's own ways, where ours take their place. What the user has set stays.
TUNE_SETTINGS = {
    # Relative paths of env packages and files mean the same in a trial as in the driver.
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    # Signals end a study in good order, and its trials can be gone on with.
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    # A trial that is in the middle of a long rollout when the study ends is not waited for.
    "TUNE_FORCE_TRIAL_CLEANUP_S": "3",
    # Tune's snapshots of a whole experiment are never read: the study's storage is what it is gone on from.
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    # Tune would print a box of its own; the study has one table.
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


@dataclass(frozen=True)
class Room:
    """The place that trials have.

    Attributes:
        request: What each of them asks for.
        at_once: How many run at the same time.
        count: Counts that anew; it becomes more as nodes are added, and less as they are lost.
        has_output: Whether all of them can write into the study's folder what they print.
    """

    request: tune.PlacementGroupFactory
    at_once: int
    count: Callable[[], int]
    has_output: bool = True


def find_room(manager: ExperimentManager) -> Room:
    """Connects to Ray and finds out how many trials it has room for; before there is anything of a study.

    Raises:
        ConfigError: There is no room for a single one, or their folder has none, or is not the same on all nodes.
    """
    for name, value in TUNE_SETTINGS.items():
        os.environ.setdefault(name, value)
    options = manager.study_options
    if options.gpus_per_trial <= 0 and str(manager.device).startswith("cuda"):
        raise ConfigError(f"--device {manager.device}: a trial has a GPU, or a part of one, with --gpus-per-trial")
    coming = coming_nodes(manager.ray_settings)
    if coming is not None:
        trials_at_once(_request(manager, coming), manager.n_jobs, coming)
    connect(manager.ray_settings)
    nodes = node_resources()
    request = _request(manager, nodes)
    grows = may_grow()
    at_once = trials_at_once(request, manager.n_jobs, nodes, grows)
    if grows and manager.n_jobs is None:
        logger.warning("The cluster is given one trial more than it has room for, so that it grows; --n-jobs asks for more")
    home = trials_home(options) or manager.log_folder
    check_shared(home, "--storage-path")
    if manager.optimization_log_path:
        check_shared(manager.optimization_log_path, "--optimization-log-path")
    if options.retrain_best:
        check_shared(manager.log_folder, "--log-folder")
    check_disk(manager, home, at_once)
    sees_output = not options.storage_path or not blind_nodes(manager.log_folder, "--log-folder")
    return Room(request, at_once, partial(_count_again, request, manager.n_jobs, grows), sees_output)


def _count_again(request: tune.PlacementGroupFactory, n_jobs: int | None, grows: bool) -> int:
    """How many trials there is room for now; none where the nodes that had it are lost."""
    nodes = node_resources()
    return trials_at_once(request, n_jobs, nodes, grows) if grows or count_fitting(request, n_jobs, nodes) else 0


def trials_home(options: StudyOptions) -> str:
    """Where trials are kept, as an absolute path or a URL; empty for the study's folder."""
    return options.storage_path if is_url(options.storage_path) or not options.storage_path else abspath(options.storage_path)


def _request(manager: ExperimentManager, nodes: Sequence[Mapping[str, float]]) -> tune.PlacementGroupFactory:
    """What each trial asks for, of nodes that have so much."""
    options = manager.study_options
    cpus = [node.get("CPU", 0.0) for node in nodes]
    # Env actors that may be on several nodes make do with what these have together.
    most = (sum(cpus) if manager.placement in (PACK, SPREAD) else max(cpus, default=0.0)) - options.cpus_per_trial
    total = env_actor_cpus(manager, most)
    return trial_request(options, total, env_actors(manager) if total > 0 else 0, manager.placement, nodes)
