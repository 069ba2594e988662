"""The disk that checkpoints will need: as much as a replay buffer really has, and refused before anything starts."""

import shutil

import pytest
from stable_baselines3.common.buffers import BaseBuffer
from studies import study_of

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.disk import MODEL_BYTES, check_disk, checkpoint_bytes

SAC = {"env_id": "Pendulum-v1", "algo": "sac", "hyperparams": {"buffer_size": 500, "learning_starts": 10}}


def manager_of(folder, **settings):
    manager = study_of(folder, **{**SAC, "gym_packages": [], **settings})
    manager.read_hyperparameters()
    return manager


@pytest.mark.parametrize(("n_timesteps", "rows"), [(10_000, 500), (200, 200)])
def test_the_estimate_is_what_the_buffer_holds(n_timesteps, rows, tmp_path):
    """No more rows than a trial has env steps."""
    buffer: BaseBuffer = manager_of(tmp_path, optimize_hyperparameters=False).setup_experiment().replay_buffer
    arrays = (buffer.observations, buffer.next_observations, buffer.actions, buffer.rewards, buffer.dones, buffer.timeouts)
    each = sum(array.nbytes for array in arrays) / len(buffer.observations)
    assert checkpoint_bytes(manager_of(tmp_path, n_timesteps=n_timesteps)) == MODEL_BYTES + rows * each


def test_a_buffer_that_saves_memory_has_each_observation_once(tmp_path):
    given = {
        **SAC["hyperparams"],
        "optimize_memory_usage": True,
        "replay_buffer_kwargs": {"handle_timeout_termination": False},
    }
    buffer = manager_of(tmp_path, hyperparams=given, optimize_hyperparameters=False).setup_experiment().replay_buffer
    arrays = (buffer.observations, buffer.actions, buffer.rewards, buffer.dones, buffer.timeouts)
    each = sum(array.nbytes for array in arrays) / len(buffer.observations)
    assert checkpoint_bytes(manager_of(tmp_path, hyperparams=given, n_timesteps=10_000)) == MODEL_BYTES + 500 * each


def test_an_algorithm_without_a_buffer_has_its_networks_alone(tmp_path):
    assert checkpoint_bytes(manager_of(tmp_path, algo="ppo", hyperparams={"n_steps": 20})) == MODEL_BYTES


def test_what_does_not_fit_is_refused_with_the_numbers(tmp_path):
    """Two copies of each seed of each trial, where there is no folder yet; nowhere else, and not where none are taken."""
    manager = manager_of(tmp_path, seeds_per_trial=3)
    free = shutil.disk_usage(tmp_path).free
    enough = free // (2 * 3 * checkpoint_bytes(manager))
    home = str(tmp_path / "not" / "there")
    check_disk(manager, home, max(1, enough // 2))
    told = rf"checkpoints of {2 * enough + 2} trials may need [\d.]+ GiB and .*there has [\d.]+ GiB free: lower --n-jobs"
    with pytest.raises(ConfigError, match=told):
        check_disk(manager, home, 2 * enough + 2)
    check_disk(manager, "s3://bucket/there", 2 * enough + 2)
    check_disk(manager_of(tmp_path, options={"checkpoint_every": float("inf")}), home, 2 * enough + 2)


def test_a_study_that_needs_too_much_is_refused_before_there_is_anything(ray_instance, tmp_path):
    huge = {"buffer_size": 10**12, "learning_starts": 10}
    with pytest.raises(ConfigError, match="may need"):
        study_of(tmp_path, **{**SAC, "hyperparams": huge}, n_timesteps=10**12).hyperparameters_optimization()
    assert list(tmp_path.iterdir()) == []
