"""Getting hold of Ray: the instance that is there, or one of our own."""

from __future__ import annotations

import logging
import os

import ray

logger = logging.getLogger(__name__)


def connect() -> None:
    """Makes sure that this process is connected to Ray.

    An existing connection stays. Otherwise Ray finds the cluster itself (`RAY_ADDRESS`, then one started on this machine), or
    starts an instance for this process alone, without a dashboard, which ends with it.

    Raises:
        ConnectionError: The cluster that `RAY_ADDRESS` names does not answer.
    """
    if ray.is_initialized():
        return
    # The workers of an instance that is started here stand back behind nobody: a learner waits for what they do.
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init(include_dashboard=False)
    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    logger.info("connected to Ray with %g CPUs", resources.get("CPU", 0.0))
