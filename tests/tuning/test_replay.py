"""What a run takes over from the study whose trial it trains as."""

import optuna
import pytest

from lit_sb3_ray.experiment.arguments import train_arguments
from lit_sb3_ray.tuning.replay import replay_settings
from lit_sb3_ray.tuning.rows import SEED


@pytest.fixture
def row():
    study = optuna.create_study()
    for seed in (6, 7):
        study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={SEED: seed}))
    return study.trials[1]


@pytest.mark.parametrize(
    ("given", "device", "threads"),
    [
        ({}, "cpu", 1),
        ({"cpus_per_trial": 2.5}, "cpu", 2),
        ({"cpus_per_trial": 0.5, "device": "cpu"}, "cpu", 1),
        ({"gpus_per_trial": 0.5}, "auto", 1),
        ({"gpus_per_trial": 1.0, "device": "cuda"}, "cuda", 1),
        ({"num_threads": 3}, "cpu", 3),
    ],
)
def test_it_has_the_device_and_the_threads_of_the_trial(given, device, threads, row):
    """A trial without a GPU trains on the CPU even where there is a GPU, and sums up with its own number of threads."""
    kept = replay_settings(train_arguments({"algo": "sac", "env": "Pendulum-v1", "seed": 3, "n_trials": 9, **given}), row)
    assert (kept["device"], kept["num_threads"]) == (device, threads)
    assert (kept["algo"], kept["env"], kept["seed"], kept["trial_id"]) == ("sac", "Pendulum-v1", 7, 1)
    assert "n_trials" not in kept
