"""SB3's callbacks that end training by what evaluations give."""

from __future__ import annotations

from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
)

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluations import EvaluationCallback

# Where each is called: at a new best model, or after every evaluation.
_PLACES = {"callback_on_new_best": StopTrainingOnRewardThreshold, "callback": StopTrainingOnNoModelImprovement}


def hang_on_evaluations(callbacks: list[BaseCallback]) -> list[BaseCallback]:
    """Gives those that look at evaluations to the evaluation, which no file can do: it builds each callback by itself.

    Args:
        callbacks: The callbacks of a training, the evaluation among them.

    Returns:
        All others, in their order; with those that look at evaluations as children of the evaluation.

    Raises:
        ConfigError: One looks at evaluations, and there are none.
    """
    stopping = [callback for callback in callbacks if isinstance(callback, tuple(_PLACES.values()))]
    if not stopping:
        return callbacks
    evaluation = next((callback for callback in callbacks if isinstance(callback, EvaluationCallback)), None)
    if evaluation is None:
        raise ConfigError(
            f"{type(stopping[0]).__name__} ends training by its evaluations, and there are none: give --eval-freq a number "
            "above 0 (a study evaluates its trials by itself, and ends them by --pruner)"
        )
    for place, kind in _PLACES.items():
        own = CallbackList([callback for callback in stopping if isinstance(callback, kind)])
        if own.callbacks:
            own.parent = evaluation
            setattr(evaluation, place, own)
    return [callback for callback in callbacks if callback not in stopping]
