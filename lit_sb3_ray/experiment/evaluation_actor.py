"""The Ray actor that evaluations on the side are played in; nothing heavy is imported at the top, as in `vec.actor`."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from lit_sb3_ray.vec.actor import EnvActor

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.evaluator import Evaluator
    from lit_sb3_ray.lit.evaluation import Evaluation
    from lit_sb3_ray.scale.resources import Request
    from lit_sb3_ray.vec.failures import EnvFailure

EVALUATION_CPUS = 1.0
"""CPUs that the actor needs: it plays in one thread, its environments among it."""


class EvaluationActor(EnvActor):
    """An actor whose environments are played in it, by an `Evaluator` that is asked for one thing after another."""

    def __init__(self, search_path: list[str], niceness: int) -> None:
        super().__init__(search_path, niceness)
        self._evaluator: Evaluator | None = None

    def furnish(self, builder: bytes) -> EnvFailure | None:
        """Builds the evaluator with its environments.

        Args:
            builder: What builds it, pickled.

        Returns:
            Why it cannot be built, if it cannot.
        """
        import torch

        from lit_sb3_ray.vec.sending import build_pickled

        torch.set_num_threads(1)
        try:
            self._evaluator = build_pickled(builder)  # type: ignore[assignment]
        except (Exception, SystemExit) as error:  # whatever the user's code raises travels to the learner
            return _failure("its construction", error)
        return None

    def evaluate(self, num_timesteps: int, model: bytes, statistics: bytes | None) -> Evaluation | EnvFailure:
        """Plays one evaluation; see `Evaluator.evaluate` for the arguments."""
        if self._evaluator is None:
            raise RuntimeError("the actor has built no environments")
        try:
            return self._evaluator.evaluate(num_timesteps, model, statistics)
        except (Exception, SystemExit) as error:  # whatever the user's code raises travels to the learner
            return _failure("an evaluation", error)


def evaluation_request() -> Request:
    """What Ray is asked for, to be counted with an experiment's other actors."""
    from lit_sb3_ray.scale.resources import Request

    return Request("evaluation actor", 1, EVALUATION_CPUS)


def _failure(doing: str, error: Exception | SystemExit) -> EnvFailure:
    from lit_sb3_ray.vec.failures import EnvFailure

    # SB3's DummyVecEnv has the index of the environment at work in a local variable.
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)]
    index = next((int(names["env_idx"]) for names in frames if "env_idx" in names), 0)
    return EnvFailure.of(index, doing, error)
