"""What Ray has to give is counted before anything is started."""

from __future__ import annotations

import os
import sys
import time
from functools import partial

import numpy as np
import pytest
import ray
from vec.catalogue import build
from vec.fault_envs import Steady

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.vec import launch
from lit_sb3_ray.vec.failures import ActorError
from lit_sb3_ray.vec.grouping import Grouping
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

pytestmark = pytest.mark.usefixtures("ray_instance")


def builders(n_envs):
    return [partial(Steady, index) for index in range(n_envs)]


def free_cpus():
    return ray.available_resources().get("CPU", 0.0)


def wait_for_cpus(cpus):
    """Ray learns of ended actors with a delay."""
    deadline = time.monotonic() + 20
    while free_cpus() < cpus:
        assert time.monotonic() < deadline
        ray.get(ray.remote(num_cpus=0)(lambda: None).remote())


def test_more_than_there_is_is_refused_at_once_with_the_numbers():
    start = time.monotonic()
    with pytest.raises(
        ConfigError, match=r"64 env actors with 1 CPUs each need 64 CPUs, but Ray has 4 .* raise envs_per_actor"
    ):
        RayVecEnv(builders(64), envs_per_actor=1, num_cpus_per_actor=1)
    assert time.monotonic() - start < launch._NOTICE_S, "no actor is waited for"


def test_what_others_hold_is_waited_for_in_vain_with_the_numbers(monkeypatch, caplog):
    monkeypatch.setattr(launch, "_NOTICE_S", 0.5)
    monkeypatch.setattr(launch, "_PLACE_PATIENCE_S", 1.5)
    wait_for_cpus(4)
    holder = ray.remote(num_cpus=3)(type("Holder", (), {"ready": lambda self: None})).remote()
    ray.get(holder.ready.remote())
    # The one that has room is started or not by then, as the machine is busy or not.
    refusal = r"[12] of 2 env actors were not started within 1.5 s: 2 .* need 2 CPUs, but Ray has 4"
    try:
        with pytest.raises(ActorError, match=refusal):
            RayVecEnv(builders(2), envs_per_actor=1, num_cpus_per_actor=1)
    finally:
        ray.kill(holder)
    assert "of 2 env actors are not started yet" in caplog.text
    wait_for_cpus(4)


def test_eight_actors_share_four_cpus_and_give_them_back():
    wait_for_cpus(4)
    venv = RayVecEnv(builders(8), envs_per_actor=1)
    assert len(set(venv.env_method("pid"))) == 8
    venv.reset()
    assert venv.step(np.zeros(8, np.int64))[0][:, 0].tolist() == [1] * 8
    venv.close()
    wait_for_cpus(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transport": "shard"}, "unknown transport 'shard'.*'shared'"),
        ({"transport": 3}, "unknown transport 3"),
        ({"num_cpus_per_actor": 0}, "num_cpus_per_actor must be positive"),
        ({"step_timeout": 0}, "step_timeout must be a positive number"),
        ({"num_cpus_per_actor": 0.00001}, "num_cpus_per_actor must be positive, 0.0001 at least"),
        ({"step_timeout": float("nan")}, "step_timeout must be a positive number"),
        ({"max_restarts": -1}, "max_restarts must be a whole number, 0 or more, got -1"),
        ({"max_restarts": "3"}, "max_restarts must be a whole number"),
        ({"envs_per_actor": 0}, "envs_per_actor must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        RayVecEnv(builders(2), **arguments)
    with pytest.raises(ConfigError, match="at least one environment"):
        RayVecEnv([])
    for wrong in (builders(1)[0], [builders(1)[0]()], None):
        with pytest.raises(ConfigError, match="env_fns must be a list of functions that build an environment each"):
            RayVecEnv(wrong)


def test_a_grouping_that_was_planned_is_used_and_must_fit():
    venv = RayVecEnv(builders(3), grouping=Grouping(range(2), (range(2, 3),)), num_cpus_per_actor=0.5)
    assert [pid == os.getpid() for pid in venv.env_method("pid")] == [True, True, False]
    venv.close()
    with pytest.raises(ConfigError, match="the grouping is of 2 environments, and there are 3"):
        RayVecEnv(builders(3), grouping=Grouping(range(2), ()))


def test_bad_input_that_a_constructor_finds_is_told_as_such():
    def build_badly():
        raise ConfigError("the joint is unknown")

    with pytest.raises(ConfigError, match=r"^the joint is unknown$"):
        RayVecEnv([build_badly] * 2, envs_per_actor=1)


def test_one_environment_stays_in_this_process():
    venv = RayVecEnv([build])
    venv.reset()
    assert venv.step(np.zeros(1, np.int64))[2].shape == (1,)
    venv.close()


def test_the_same_environment_twice_is_refused():
    env = build()
    with pytest.raises(RuntimeError, match="one environment more than once"):
        RayVecEnv([lambda: env, lambda: env, lambda: env, lambda: env])


def learner_class():
    """Makes the class of a trial: a learner in a placement group. It is local, so that it travels by value."""

    class Learner:
        def count(self, n_envs, **arguments):
            """Counts the processes of a RayVecEnv in this one, or says why there is none."""
            from vec.fault_envs import Steady

            try:
                venv = RayVecEnv([partial(Steady, index) for index in range(n_envs)], **arguments)
            except ConfigError as error:
                return str(error)
            venv.reset()
            venv.step(np.zeros(n_envs, np.int64))
            pids = venv.env_method("pid")
            venv.close()
            return len(set(pids))

    return Learner


def test_a_trial_counts_what_is_reserved_for_it():
    wait_for_cpus(4)
    group = ray.util.placement_group([{"CPU": 1}, {"CPU": 1}, {"CPU": 1}], strategy="PACK")
    ray.get(group.ready())
    strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
        group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
    )
    path = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    learner = ray.remote(num_cpus=1)(learner_class()).options(scheduling_strategy=strategy, runtime_env=path).remote()
    try:
        assert ray.get(learner.count.remote(2, envs_per_actor=1, num_cpus_per_actor=1)) == 2
        refusal = ray.get(learner.count.remote(3, envs_per_actor=1, num_cpus_per_actor=1))
        assert "3 env actors with 1 CPUs each need 3 CPUs, but the trial's placement group has 2 for them" in refusal
        assert ray.get(learner.count.remote(5, envs_per_actor=1)) == 5
        assert ray.get(learner.count.remote(9)) == 3
    finally:
        ray.kill(learner)
        ray.util.remove_placement_group(group)
