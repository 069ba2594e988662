"""What the names of rl_zoo3 mean here. rl_zoo3 itself is never imported."""

from __future__ import annotations

MODULES = {
    "rl_zoo3.wrappers": "lit_sb3_ray.envs.wrappers",
    "rl_zoo3.callbacks": "lit_sb3_ray.experiment.callbacks",
    "utils.wrappers": "lit_sb3_ray.envs.wrappers",
    "utils.callbacks": "lit_sb3_ray.experiment.callbacks",
    "gymnasium.wrappers.time_limit": "gymnasium.wrappers",
}
"""Modules that configuration files name, and where their classes are found today."""

CLASSES = {"rl_zoo3.utils.flatten_dict_observations": "gymnasium.wrappers.FlattenObservation"}
"""Functions that configuration files name as wrappers, and the classes that do the same."""

REFUSED = {
    "rl_zoo3.callbacks.TrialEvalCallback": (
        "it needs an env and a trial, which no file can give; `tune` evaluates and prunes its trials by itself"
    ),
    "rl_zoo3.gym_patches.PatchedTimeLimit": "it is a patch of gymnasium's TimeLimit, which is used unchanged here",
    "rl_zoo3.utils.SimpleLinearSchedule": "a linear schedule is written as lin_<start>, such as lin_0.001",
    "rl_zoo3.utils.linear_schedule": "a linear schedule is written as lin_<start>, such as lin_0.001",
    "rl_zoo3.utils.StoreDict": "it reads a command line",
    "rl_zoo3.wrappers.LowPassFilterWrapper": "rl_zoo3 has dropped it; ActionSmoothingWrapper is what it has left",
    "rl_zoo3.wrappers.PlotActionWrapper": "rl_zoo3 has dropped it",
}
"""Names that lead to nothing that a configuration file could use here, and why."""
