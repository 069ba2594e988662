"""`--devices`: several learners do what one does with all their envs, and a run of theirs is a run like any other."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import training_process as tp
from learner_processes import learner_pids
from learner_runs import NET, SMALL, manager, train
from stable_baselines3 import PPO
from stable_baselines3.common.save_util import load_from_pkl

from lit_sb3_ray import load_run
from lit_sb3_ray.errors import ConfigError


@pytest.mark.usefixtures("ray_instance")
def test_a_run_of_two_is_counted_evaluated_and_written_as_one_run(tmp_path):
    hyperparams = {**SMALL, "normalize": True, "target_kl": 0.001, "learning_rate": 0.01}
    model = train(made := manager(tmp_path, hyperparams=hyperparams, save_freq=256))
    run = made.run.path
    assert model.num_timesteps == 512
    assert (model.n_envs, model.batch_size) == (2, 16)
    with np.load(run / "evaluations.npz") as file:
        assert file["timesteps"].tolist() == [200, 400]
    # Episodes of 5 steps in four envs, each with a file of its own, in the first learner's folder alone.
    assert sorted(path.name for path in run.glob("*.monitor.csv")) == [f"{index}.monitor.csv" for index in range(4)]
    lengths = [int(float(row["l"])) for path in run.glob("*.monitor.csv") for row in rows(path)]
    assert sum(lengths) == 500
    assert tp.checkpoints(run) == [256, 512]
    assert sorted(path.name for path in (run / "checkpoints" / "512").iterdir()) == [
        "best_model.zip",
        "best_model_vecnormalize.pkl",
        "learner_1.pkl",
        "model.zip",
        "state.json",
        "vecnormalize.pkl",
    ]
    assert not list(run.glob("checkpoints/.*"))
    assert [int(row["step"]) for row in tp.metrics(run)][-1] == 512
    # What is normalised has been seen by all: their steps, and the resets before the first.
    assert model.get_vec_normalize_env().obs_rms.count == pytest.approx(512 + 4, abs=0.01)
    loaded, env = load_run(run, device="cpu")
    assert isinstance(loaded, PPO)
    assert (loaded.num_timesteps, loaded.target_kl) == (512, 0.001)
    env.close()
    assert learner_pids() == set()


def rows(path):
    with path.open(newline="") as file:
        file.readline()
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("ray_instance")
def test_the_same_seed_gives_the_same_run_and_another_number_of_learners_another(tmp_path):
    models = [train(manager(tmp_path / str(i), devices=n, eval_freq=-1)) for i, n in enumerate((2, 2, 1))]
    weights = [model.get_parameters() for model in models]
    assert tp.differences(weights[0], weights[1]) == []
    assert tp.differences(weights[0], weights[2]) != []


@pytest.mark.usefixtures("ray_instance")
def test_learners_may_have_their_envs_in_ray_actors(tmp_path):
    settings = {"vec_env_type": "ray", "env_cpus": 0.25, "envs_per_actor": 1, "eval_freq": -1}
    in_actors = train(manager(tmp_path / "ray", **settings)).get_parameters()
    here = train(manager(tmp_path / "here", eval_freq=-1)).get_parameters()
    assert tp.differences(in_actors, here) == []


@pytest.mark.usefixtures("ray_instance")
def test_a_callback_of_the_hyperparameters_is_in_every_learner(tmp_path):
    """It changes the model in each, so that they do not come apart."""
    train(made := manager(tmp_path, hyperparams={**SMALL, "callback": "tiny_callbacks.Shift"}))
    assert tp.checkpoints(made.run.path) == [512]


@pytest.mark.usefixtures("ray_instance")
def test_inside_a_placement_group_learners_are_refused(tmp_path):
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    @ray.remote(num_cpus=1)
    def inside(folder, hyperparams):
        from lit_sb3_ray import ExperimentManager
        from lit_sb3_ray.errors import ConfigError

        given = {"n_timesteps": 512, "eval_freq": -1, "vec_env_type": "dummy", "device": "cpu", "devices": 2}
        made = ExperimentManager(None, "ppo", "CartPole-v1", folder, hyperparams=hyperparams, **given)
        try:
            made.learn(made.setup_experiment())
        except ConfigError as error:
            return str(error)
        return None

    group = placement_group([{"CPU": 3}])
    try:
        strategy = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
        answer = ray.get(inside.options(scheduling_strategy=strategy).remote(str(tmp_path), SMALL))
    finally:
        remove_placement_group(group)
    assert "--devices 2 inside a trial" in answer


def test_more_learners_than_processors_are_refused_before_anything_is_trained(tmp_path, ray_instance):
    hyperparams = {**SMALL, "n_envs": 6, "batch_size": 36}
    with pytest.raises(ConfigError, match="learners") as told:
        train(manager(tmp_path, hyperparams=hyperparams, devices=6))
    assert "lower --devices" in str(told.value)
    assert not list(tmp_path.rglob("*.zip"))


# What else a run may have


GOALS = {"policy": "MultiInputPolicy", "n_envs": 2, "replay_buffer_class": "HerReplayBuffer", "learning_starts": 40}
GOALS |= {"batch_size": 16, "buffer_size": 400, "policy_kwargs": NET}


@pytest.mark.usefixtures("ray_instance")
def test_hindsight_buffers_are_kept_and_gone_on_with(tmp_path):
    settings = {"env_id": "TinyGoal-v0", "eval_freq": -1}
    first = train(made := manager(tmp_path, "sac", hyperparams=GOALS, n_timesteps=120, **settings))
    last = made.run.path / "checkpoints" / "120"
    buffers = [load_from_pkl(last / name) for name in ("replay_buffer.pkl", "replay_buffer_1.pkl")]
    # Each has seen every other step, and goals of its own.
    assert [buffer["pos"] for buffer in buffers] == [60, 60]
    assert not np.array_equal(*(buffer["observations"]["desired_goal"][:60] for buffer in buffers))
    resumed = train(manager(tmp_path, "sac", n_timesteps=200, resume=str(made.run.path), hyperparams={}, **settings))
    assert resumed.num_timesteps == 200
    assert resumed.replay_buffer.pos == 100
    assert resumed._n_updates > first._n_updates


@pytest.mark.usefixtures("ray_instance")
def test_a_warm_start_gives_all_learners_the_model_that_it_starts_from(tmp_path):
    """Its network and the length of its rollouts are in its file alone."""
    old = {**SMALL, "n_steps": 16, "n_envs": 2, "batch_size": 16, "policy_kwargs": {"net_arch": [5]}}
    train(made := manager(tmp_path / "old", hyperparams=old, devices=1, n_timesteps=32, eval_freq=-1))
    new = {"n_envs": 4, "batch_size": 32, "n_epochs": 2}
    settings = {"trained_agent": str(made.run.model), "eval_freq": -1, "n_timesteps": 256}
    model = train(manager(tmp_path / "new", hyperparams=new, **settings))
    assert (model.num_timesteps, model.n_steps, model.batch_size) == (256, 16, 16)
    assert model.policy.action_net.in_features == 5


@pytest.mark.usefixtures("ray_instance")
def test_a_replay_buffer_beside_a_warm_start_is_the_first_learners(tmp_path, caplog):
    small = {"policy": "MlpPolicy", "learning_starts": 20, "batch_size": 8, "buffer_size": 400, "policy_kwargs": NET}
    settings = {"n_timesteps": 60, "eval_freq": -1}
    old = manager(tmp_path / "old", "sac", hyperparams={**small, "n_envs": 1}, devices=1, save_replay_buffer=True, **settings)
    train(old)
    new = manager(tmp_path / "new", "sac", hyperparams={**small, "n_envs": 2}, trained_agent=str(old.run.model), **settings)
    assert train(new).replay_buffer.pos == 60 + 30
    assert "the others begin with empty ones" in caplog.text


@pytest.mark.usefixtures("ray_instance")
def test_a_run_of_two_may_be_fast_and_evaluated_on_the_side_with_one_bar_and_all_loggers(tmp_path, capfd):
    settings = {"fast": True, "async_eval": True, "show_progress": True, "loggers": ["csv"], "save_freq": 256}
    model = train(made := manager(tmp_path, **settings))
    run = made.run.path
    with np.load(run / "evaluations.npz") as file:
        assert file["timesteps"].tolist() == [200, 400]
    (written,) = run.glob("csv/version_*/metrics.csv")
    assert max(int(row["step"]) for row in tp.read_csv(written)) == 512
    assert capfd.readouterr().err.count("512 of 512 steps") == 1
    assert model.num_timesteps == 512
    assert learner_pids() == set()


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("devices", [1, 4])
def test_a_run_of_two_is_not_gone_on_with_by_another_number(devices, tmp_path):
    train(made := manager(tmp_path, n_timesteps=128, eval_freq=-1))
    with pytest.raises(ConfigError, match=r"--devices [14] contradicts --resume: .* has 2 of them"):
        train(manager(tmp_path, n_timesteps=256, resume=str(made.run.path), eval_freq=-1, devices=devices))
    assert tp.checkpoints(made.run.path) == [128]
