"""What steps an experiment's envs: settings checked, all actors counted together, and `auto` that changes no result."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time

import gymnasium as gym
import pytest
import slow_envs
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.stepping import EnvSet, env_actor_cpus, env_sets, plan
from lit_sb3_ray.scale.resources import Request
from lit_sb3_ray.tuning.trial_maker import trial_settings
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

TINY = {"n_steps": 48, "batch_size": 48, "n_epochs": 1, "normalize": False}


def experiment(folder, env_id="CartPole-v1", cls=ExperimentManager, **settings):
    options = {"n_envs": 4, "n_timesteps": 96, "eval_freq": -1, "verbose": 0, "device": "cpu", "hyperparams": TINY, "seed": 3}
    return cls(None, "ppo", env_id, str(folder), **{**options, **settings})


def planned(manager):
    manager.read_hyperparameters()
    return plan(manager, env_sets(manager))


def classes(manager):
    return [stepping.vec_env_cls for stepping in planned(manager).values()]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vec_env_type": "threads"}, "unknown vec_env_type 'threads'"),
        ({"envs_per_actor": 0}, "envs_per_actor must be 'auto' or a positive integer, not 0"),
        ({"envs_per_actor": "all"}, "envs_per_actor must be 'auto' or a positive integer, not 'all'"),
        ({"envs_per_actor": True}, "envs_per_actor must be"),
        ({"env_cpus": 0}, "env_cpus must be a number of CPUs, 0.0001 or more, not 0"),
        ({"env_cpus": float("nan")}, "env_cpus must be"),
        ({"env_timeout": 0.0}, "env_timeout must be a positive number of seconds, not 0.0"),
        ({"env_timeout": float("inf")}, "env_timeout must be"),
        ({"max_env_restarts": -1}, "max_env_restarts must be a whole number, 0 or more, not -1"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings, message, tmp_path):
    with pytest.raises(ConfigError, match=message) as error:
        experiment(tmp_path, **settings)
    assert "\n" not in str(error.value)


def test_settings_of_actors_that_there_are_not_are_told(tmp_path, caplog):
    experiment(tmp_path, vec_env_type="dummy", env_cpus=0.5, env_timeout=3.0)
    assert "env_cpus, env_timeout has no effect: vec_env_type 'dummy' has no actors" in caplog.text


def test_settings_are_kept_in_the_run_s_arguments(tmp_path):
    given = {"envs_per_actor": 2, "env_cpus": 0.5, "env_timeout": 9.0, "max_env_restarts": 1}
    arguments = experiment(tmp_path, **given).arguments()
    assert {name: arguments[name] for name in given} == given


def test_a_trial_gets_the_study_s_settings(tmp_path):
    given = {"envs_per_actor": 2, "env_cpus": 0.5, "env_timeout": 9.0, "max_env_restarts": 1}
    settings = trial_settings(experiment(tmp_path, **given))
    assert {name: settings[name] for name in given} == given


def test_the_envs_that_are_there_together(tmp_path):
    training, evaluation = EnvSet(4, is_evaluation=False), EnvSet(2, is_evaluation=True)
    manager = experiment(tmp_path, n_eval_envs=2)
    manager.read_hyperparameters()
    assert env_sets(manager) == (training,)
    manager.trial_hyperparams = {}
    assert env_sets(manager) == (training, evaluation)
    manager = experiment(tmp_path, n_eval_envs=2, eval_freq=10)
    manager.read_hyperparameters()
    assert env_sets(manager) == (training, evaluation)


@pytest.mark.usefixtures("ray_instance")
def test_settings_reach_the_actors_of_training_and_evaluation(tmp_path):
    given = {"envs_per_actor": 2, "env_cpus": 0.5, "env_timeout": 9.0, "max_env_restarts": 1, "placement": "pack"}
    manager = experiment(tmp_path, vec_env_type="ray", eval_freq=50, n_eval_envs=3, **given)
    training, evaluation = planned(manager).values()
    for stepping, shares in ((training, [2, 2]), (evaluation, [2, 1])):
        assert stepping.vec_env_cls is RayVecEnv
        grouping = stepping.kwargs["grouping"]
        assert [len(share) for share in grouping.actors] == shares
        assert not grouping.inline
        others = {key: value for key, value in stepping.kwargs.items() if key != "grouping"}
        assert others == {"num_cpus_per_actor": 0.5, "step_timeout": 9.0, "max_restarts": 1, "placement": "pack"}


@pytest.mark.usefixtures("ray_instance")
def test_without_a_number_all_actors_share_the_cpus(tmp_path):
    manager = experiment(tmp_path, vec_env_type="subproc", eval_freq=50, n_eval_envs=4, envs_per_actor=1)
    assert [stepping.kwargs["num_cpus_per_actor"] for stepping in planned(manager).values()] == [0.5, 0.5]


@pytest.mark.usefixtures("ray_instance")
def test_actors_of_training_evaluation_and_others_are_counted_together_before_any_starts(tmp_path):
    given = {"vec_env_type": "ray", "envs_per_actor": 1, "env_cpus": 1, "eval_freq": 50, "n_eval_envs": 2}
    numbers = (
        "3 env actors for training with 1 CPUs each and 2 env actors for evaluation with 1 CPUs each need 5 CPUs, but Ray has "
        r"4 for them, .* free now: raise --envs-per-actor, or lower --env-cpus, --n-envs or --n-eval-envs"
    )
    start = time.monotonic()
    with pytest.raises(ConfigError, match=numbers):
        experiment(tmp_path, n_envs=3, **given).setup_experiment()
    assert time.monotonic() - start < 5
    assert list(tmp_path.rglob("*.yml")) == []
    manager = experiment(tmp_path, n_envs=2, **given)
    manager.read_hyperparameters()
    plan(manager, env_sets(manager))
    with pytest.raises(ConfigError, match="and 1 evaluators with 1 CPUs each need 5 CPUs"):
        plan(manager, env_sets(manager), [Request("evaluators", 1, 1.0)])


def test_one_env_stays_in_this_process(tmp_path, caplog):
    caplog.set_level(logging.INFO, "lit_sb3_ray")
    assert classes(experiment(tmp_path, n_envs=1, eval_freq=50)) == [DummyVecEnv, DummyVecEnv]
    assert "vec_env auto" not in caplog.text


def test_a_time_limit_needs_actors(tmp_path, ray_instance):
    assert classes(experiment(tmp_path, n_envs=1, env_timeout=5.0)) == [RayVecEnv]


def test_auto_never_starts_ray_to_find_out(tmp_path):
    code = (
        "import sys, logging; from lit_sb3_ray import ExperimentManager\n"
        "logging.basicConfig(level=logging.INFO)\n"
        f"manager = ExperimentManager(None, 'ppo', 'Slow-v0', {str(tmp_path)!r}, n_timesteps=400, n_envs=4, n_eval_envs=4,\n"
        "    eval_freq=400, env_kwargs={'seconds': 0.002}, gym_packages=['slow_envs'], hyperparams={'n_steps': 100})\n"
        "manager.setup_experiment()\n"
        "assert 'ray' not in sys.modules\n"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert "vec_env auto: Training: an environment's step takes 2" in done.stderr
    assert "for 400 env steps this process is faster" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("ray_instance")
def test_auto_takes_what_is_faster_and_leaves_the_same_weights(tmp_path, caplog):
    """Case C10: cheap environments stay in-process, and what was measured is told."""
    caplog.set_level(logging.INFO, "lit_sb3_ray")
    weights = []
    for seconds, told in ((0.0, "this process is faster"), (0.012, "actors are faster")):
        caplog.clear()
        manager = experiment(tmp_path, "Slow-v0", n_timesteps=384, env_kwargs={"seconds": seconds})
        model = manager.setup_experiment()
        assert told in caplog.text
        manager.learn(model)
        weights.append(model.policy.state_dict())
    fast, slow = weights
    assert all(torch.equal(fast[name], slow[name]) for name in fast)


class FailingEnv(slow_envs.SlowEnv):
    """Fails in its construction, or in its first step."""

    def __init__(self, method="__init__"):
        super().__init__()
        self.method = method
        if method == "__init__":
            raise ValueError("the joint is broken")

    def step(self, action):
        if self.method == "step":
            raise KeyError("the joint is broken")
        return super().step(action)


gym.register(id="Failing-v0", entry_point=FailingEnv)


@pytest.mark.parametrize(("method", "kind"), [("__init__", ConfigError), ("step", KeyError)])
def test_auto_gives_the_error_that_dummy_gives(method, kind, tmp_path):
    told = []
    for vec_env_type in ("dummy", "auto"):
        manager = experiment(tmp_path, "Failing-v0", vec_env_type=vec_env_type, env_kwargs={"method": method})
        with pytest.raises(kind, match="the joint is broken") as error:
            manager.learn(manager.setup_experiment())
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.usefixtures("ray_instance")
def test_what_a_constructor_refuses_is_bad_input_in_an_actor_too(tmp_path):
    manager = experiment(tmp_path, "Failing-v0", vec_env_type="ray", envs_per_actor=1)
    told = r"^environment 'Failing-v0' cannot be built: ValueError: the joint is broken \(env_kwargs\)$"
    with pytest.raises(ConfigError, match=told):
        manager.setup_experiment()


class Own(DummyVecEnv):
    """A user's own class, with an argument of its own."""

    def __init__(self, env_fns, note=""):
        if note == "break":
            raise RuntimeError("no more licences")
        super().__init__(env_fns)
        self.note = note


class OwnManager(ExperimentManager):
    default_vec_env_cls = Own


def test_a_user_s_own_class_keeps_its_arguments(tmp_path):
    manager = experiment(tmp_path, cls=OwnManager, envs_per_actor=2, env_timeout=3.0)
    manager.vec_env_kwargs = {"note": "mine"}
    for is_evaluation in (False, True):
        env = manager.create_envs(2, eval_env=is_evaluation, no_log=True)
        assert env.get_attr("spec")[0].id == "CartPole-v1"
        env.close()
    [stepping] = planned(manager).values()
    assert (stepping.vec_env_cls, stepping.kwargs) == (Own, {"note": "mine"})


def test_what_its_constructor_raises_is_bad_input_only_for_a_wrong_keyword(tmp_path):
    manager = experiment(tmp_path, cls=OwnManager)
    manager.vec_env_kwargs = {"not": "mine"}
    with pytest.raises(ConfigError, match=r"unknown vec_env_kwargs key of Own 'not'.*did you mean 'note'"):
        manager.setup_experiment()
    manager = experiment(tmp_path, cls=OwnManager)
    manager.vec_env_kwargs = {"note": "break"}
    with pytest.raises(RuntimeError, match="no more licences"):
        manager.setup_experiment()


@pytest.mark.parametrize(
    ("settings", "most", "cpus"),
    [
        ({"vec_env_type": "auto"}, 7, 0),
        ({"vec_env_type": "dummy"}, 7, 0),
        ({"vec_env_type": "ray"}, 7, 4),
        ({"vec_env_type": "ray"}, 2.5, 2),
        ({"vec_env_type": "ray", "envs_per_actor": 1}, 2, 6),
        ({"vec_env_type": "ray", "envs_per_actor": 1, "env_cpus": 0.5}, 2, 3),
        ({"vec_env_type": "ray", "env_timeout": 5.0}, 7, 6),
        ({"vec_env_type": "auto", "env_timeout": 5.0, "envs_per_actor": 4}, 7, 2),
    ],
)
def test_cpus_that_a_trial_reserves_for_its_env_actors(settings, most, cpus, tmp_path):
    manager = experiment(tmp_path, n_eval_envs=2, eval_freq=50, **settings)
    manager.read_hyperparameters()
    assert env_actor_cpus(manager, most) == cpus


def trial_class():
    """Makes the class of a trial that sets an experiment up. It is local, so that it travels by value."""

    class Trial:
        def set_up(self, folder, **settings):
            """Sets it up and closes it; says why it cannot be, or nothing."""
            from lit_sb3_ray import ExperimentManager
            from lit_sb3_ray.errors import ConfigError

            begun = time.monotonic()
            manager = ExperimentManager(None, "a2c", "CartPole-v1", folder, n_timesteps=8, verbose=0, **settings)
            try:
                env = manager.setup_experiment().get_env()
            except ConfigError as error:
                return str(error), time.monotonic() - begun
            pids = len(set(env.env_method("pid"))) if settings["env_kwargs"] else 0
            env.close()
            return pids, time.monotonic() - begun

    return Trial


@pytest.mark.slow
def test_a_trial_whose_group_has_no_room_for_its_env_actors_is_refused_in_seconds(tmp_path, ray_instance):
    import ray

    group = ray.util.placement_group([{"CPU": 1}])
    assert group.wait(20)
    strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
    path = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    trial = ray.remote(num_cpus=1)(trial_class()).options(scheduling_strategy=strategy, runtime_env=path).remote()
    given = {"vec_env_type": "ray", "n_envs": 4, "envs_per_actor": 1, "env_cpus": 1, "eval_freq": -1, "env_kwargs": None}
    try:
        told, seconds = ray.get(trial.set_up.remote(str(tmp_path), **given))
        assert "4 env actors for training with 1 CPUs each need 4 CPUs, but the trial's placement group has 0" in told
        assert seconds < 10
        # What it chooses by itself makes do with what is reserved.
        assert ray.get(trial.set_up.remote(str(tmp_path), **{**given, "envs_per_actor": None, "env_cpus": None}))[0] == 0
    finally:
        ray.kill(trial)
        ray.util.remove_placement_group(group)
