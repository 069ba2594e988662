"""Small studies for the tests: their settings, and what they leave in their storage."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.experiment.study_options import StudyOptions
from lit_sb3_ray.tuning.storage import open_study

NAME = "s"
N_STEPS = 20
"""Env steps of a rollout, and between two evaluations."""
POINT = {
    "one_minus_gamma": 0.01,
    "learning_rate": 0.001,
    "one_minus_gae_lambda": 0.05,
    "net_arch": "small",
    "activation_fn": "tanh",
    "ent_coef": 1e-4,
    "max_grad_norm": 1.0,
}
"""What a trial may be made to draw of the space of a2c."""


def journal(folder):
    return str(Path(folder) / "study.log")


def study_of(folder, env_id="StudyWorth-v0", algo="a2c", options=None, **settings):
    """A study of two trials on an env that takes no time; `options` go to `StudyOptions`, the rest to the manager."""
    given = {
        "n_timesteps": 5 * N_STEPS,
        "n_evaluations": 5,
        "n_trials": 2,
        "n_jobs": 1,
        "pruner": "none",
        "sampler": "random",
        "n_eval_episodes": 2,
        "seed": 1,
        "verbose": 0,
        "device": "cpu",
        "hyperparams": {"n_steps": N_STEPS, "callback": "study_envs.Worth"},
        "gym_packages": ["study_envs", "tiny_envs"],
        "optimize_hyperparameters": True,
        "study_options": StudyOptions(**(options or {})),
        **settings,
    }
    return ExperimentManager(None, algo, env_id, str(Path(folder) / "logs"), **given)


def enqueue(folder, *points, name=NAME):
    """Begins a study in the folder's journal with points that its first trials are to have."""
    study = open_study(journal(folder), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Some are out of the space's range.
        for point in points:
            study.enqueue_trial(point)
    return {"storage": journal(folder), "study_name": name}


def rows_of(folder, name=NAME):
    return open_study(journal(folder), name).trials


def states_of(folder, name=NAME):
    return [row.state.name for row in rows_of(folder, name)]


def plan(folder, *troubles):
    """Plans troubles for `study_envs`; gives the env's arguments for training and for evaluation."""
    (Path(folder) / "plan.json").write_text(json.dumps(troubles))
    return {
        "env_kwargs": {"folder": str(folder), "role": "train"},
        "eval_env_kwargs": {"folder": str(folder), "role": "eval"},
    }


def met(folder):
    """What has happened of what was planned: pairs of what, and the process."""
    lines = (Path(folder) / "met.txt").read_text().splitlines()
    return [(what, int(pid)) for what, _, pid in (line.rpartition(" ") for line in lines)]
