"""Ending the actors of a study that is over before its trials are.

Ray Tune asks each to stop, which it hears only after the evaluation that it is on the way to, and waits ten seconds for that.
Whatever a trial has done since its last checkpoint is lost either way, so that nothing is gained by waiting.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import ray

if TYPE_CHECKING:
    from ray.actor import ActorHandle
    from ray.tune.execution.tune_controller import TuneController

    from lit_sb3_ray.tuning.trainable import ExperimentTrial

# Seconds for what is idle to close its envs by itself.
GRACE_S = 1.0


class ActorsEnd:
    """Ends the actors of a study's trials; made when they have been asked to stop.

    Args:
        controller: Tune's.
    """

    def __init__(self, controller: TuneController) -> None:
        live = controller._actor_manager._live_actors_to_ray_actors_resources.values()
        self._actors: list[ActorHandle[ExperimentTrial]] = [actor for actor, _ in live]
        self._timer = threading.Timer(GRACE_S, self._kill)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Forgets those that are left: Tune has seen to them."""
        self._timer.cancel()
        self._timer.join()

    def _kill(self) -> None:
        for actor in self._actors:
            ray.kill(actor)


def release(controller: TuneController | None) -> None:
    """Ends all actors of a study that has been broken off by an error, and frees what is reserved for them; Tune would not.

    Args:
        controller: Tune's; None when it has begun no trial.
    """
    if controller is not None:
        controller._actor_manager.cleanup()  # type: ignore[no-untyped-call]
