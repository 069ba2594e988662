"""SB3 callbacks that hyperparameter files may name, each also as `rl_zoo3.callbacks.<name>`."""

from __future__ import annotations

from lit_sb3_ray.experiment.callbacks.parallel_training import ParallelTrainCallback
from lit_sb3_ray.experiment.callbacks.raw_statistics import RawStatisticsCallback
from lit_sb3_ray.experiment.callbacks.saved_statistics import SaveVecNormalizeCallback
from lit_sb3_ray.experiment.callbacks.trial_evaluation import TrialEvalCallback

__all__ = ["ParallelTrainCallback", "RawStatisticsCallback", "SaveVecNormalizeCallback", "TrialEvalCallback"]
