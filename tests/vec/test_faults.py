"""Environments and processes that fail for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import ray
from vec.fault_envs import (
    CrashingAtReset,
    FailingClose,
    FailingConstruction,
    Killed,
    Raising,
    Steady,
    Stuck,
    StuckWithServer,
    Unpicklable,
    WithChild,
    WithServer,
)
from vec.processes import ended_within, is_running, open_descriptors, our_sockets, shared_memory

from lit_sb3_ray.vec.failures import ActorError, EnvError, PeerLost
from lit_sb3_ray.vec.launch import _accept
from lit_sb3_ray.vec.memory import dial, listening
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

pytestmark = pytest.mark.usefixtures("ray_instance")
TRANSPORTS = ["shared", "calls"]
N_ENVS = 4


def make(env_class, *, transport="shared", envs_per_actor=2, environment=None, **kwargs):
    """Builds four environments, two an actor unless told otherwise."""
    builders = [partial(env_class, index, **(environment or {})) for index in range(N_ENVS)]
    return RayVecEnv(builders, envs_per_actor=envs_per_actor, transport=transport, **kwargs)


def step(venv, times=1):
    for _ in range(times):
        result = venv.step(np.zeros(N_ENVS, np.int64))
    return result


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_exception_names_the_environment_shows_its_traceback_and_closes_the_others(transport):
    """Case C2: an environment that fails on its 1,000th step."""
    venv = make(Raising, transport=transport, environment={"at": 1000, "who": 3})
    pids = set(venv.env_method("pid"))
    venv.reset()
    step(venv, 999)
    with pytest.raises(EnvError, match="environment 3 failed in step: ValueError: boom") as caught:
        step(venv)
    assert "in misbehave" in str(caught.value)
    assert caught.value.index == 3
    assert isinstance(caught.value.__cause__, ValueError)
    assert all(ended_within(pid, 5) for pid in pids)
    with pytest.raises(RuntimeError, match="closed"):
        step(venv)
    venv.close()


def test_an_exception_of_the_learners_own_share_is_told_alike():
    venv = make(Raising, envs_per_actor="auto", environment={"at": 3, "who": 0})
    others = [pid for pid in venv.env_method("pid") if pid != os.getpid()]
    assert len(others) < N_ENVS
    venv.reset()
    step(venv, 2)
    with pytest.raises(EnvError, match="environment 0 failed in step: ValueError: boom"):
        step(venv)
    assert all(ended_within(pid, 5) for pid in others)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_construction_that_fails_names_the_environment(transport):
    with pytest.raises(EnvError, match="environment 2 failed in its construction: RuntimeError: no simulator here"):
        make(FailingConstruction, transport=transport, environment={"who": 2})


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_info_that_cannot_be_sent_is_an_error_of_its_environment(transport):
    venv = make(Unpicklable, transport=transport)
    venv.reset()
    with pytest.raises(EnvError, match="sending what it returned"):
        step(venv)
    venv.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_answer_that_cannot_be_sent_is_an_error_and_ends_nothing(transport):
    venv = make(Unpicklable, transport=transport)
    with pytest.raises(TypeError, match=r"cannot pickle .* object") as caught:
        venv.env_method("lock", indices=[3])
    assert "environment 3 in sending what it returned" in "".join(caught.value.__notes__)
    assert len(set(venv.env_method("pid"))) == 2
    venv.close()


def test_an_answer_that_is_lost_on_its_way_costs_its_actor_no_more():
    """Ray may miss what a lost node has kept before it misses the actor."""
    owner = ray.remote(num_cpus=0)(type("Owner", (), {"put": lambda self: [ray.put(np.zeros(1))]})).remote()
    [lost] = ray.get(owner.put.remote())
    ray.kill(owner)
    with pytest.raises(ray.exceptions.ObjectLostError):
        while True:
            ray.get(lost)
    venv = make(Steady, transport="calls")
    venv.reset()
    venv.step_async(np.zeros(N_ENVS, np.int64))
    venv._crew.fleet.peers[1]._call = lost
    _, _, dones, infos = venv.step_wait()
    assert dones.tolist() == [False, False, True, True]
    assert infos[2]["env_restarted"]
    venv.close()


def test_an_actor_that_dies_as_it_connects_is_lost_with_its_cause():
    actor = ray.remote(num_cpus=0)(type("Dying", (), {"die": lambda self: os._exit(3)})).remote()
    with listening(1) as (listener, address), pytest.raises(PeerLost, match="its actor has died"):
        dial(address, b"word").close()
        _accept(listener, b"word", {0: actor.die.remote()}, time.monotonic() + 60)


def test_an_actor_that_has_ended_is_not_ended_again():
    """Its process id may be another's by then."""
    venv = make(Steady, envs_per_actor=4)
    process = venv._crew.fleet.peers[0]._process
    process.kill()
    other = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        process.home = replace(process.home, pid=other.pid)
        venv.close()
        assert not ended_within(other.pid, 0.3)
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_killed_actor_is_replaced_and_its_episodes_end_as_truncated(transport):
    """Case C12: one dead actor does not end the run."""
    venv = make(Steady, transport=transport)
    venv.seed(100)
    venv.set_attr("level", 6)
    venv.reset()
    step(venv, 5)
    pids = venv.env_method("pid")
    os.kill(pids[2], signal.SIGKILL)
    observations, rewards, dones, infos = step(venv)
    assert observations.tolist() == [[6, 0], [6, 1], [0, 2], [0, 3]]
    assert rewards.tolist() == [1, 1, 0, 0]
    assert dones.tolist() == [False, False, True, True]
    for index in (2, 3):
        assert infos[index].keys() == {"TimeLimit.truncated", "terminal_observation", "env_restarted"}
        assert infos[index]["TimeLimit.truncated"]
        assert infos[index]["env_restarted"]
        assert infos[index]["terminal_observation"].tolist() == [5, index]
    assert infos[0] == {"TimeLimit.truncated": False}
    assert venv.env_method("pid")[:2] == pids[:2]
    assert venv.get_attr("level") == [6] * N_ENVS
    seeds = [seed for each in venv.get_attr("seeds", [2, 3]) for seed in each]
    assert len(set(seeds)) == 2
    assert not set(seeds) & {100, 101, 102, 103}
    observations, rewards, dones, _ = step(venv)
    assert observations.tolist() == [[7, 0], [7, 1], [1, 2], [1, 3]]
    assert not dones.any()
    venv.close()


def test_an_actor_that_dies_in_the_middle_of_a_step_is_replaced(tmp_path):
    venv = make(Killed, environment={"at": 4, "who": 1, "flag": str(tmp_path / "killed")})
    venv.reset()
    _, _, dones, infos = step(venv, 4)
    assert dones.tolist() == [True, True, False, False]
    assert infos[1]["terminal_observation"].tolist() == [3, 1]
    venv.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_all_actors_at_once_are_replaced(transport):
    venv = make(Steady, transport=transport)
    venv.reset()
    for pid in set(venv.env_method("pid")):
        os.kill(pid, signal.SIGKILL)
    _, _, dones, _ = step(venv)
    assert dones.all()
    _, _, dones, _ = step(venv, 3)
    assert not dones.any()
    venv.close()


def test_an_actor_that_was_killed_between_steps_is_replaced_by_whatever_is_asked_next():
    venv = make(Steady)
    venv.seed(7)
    venv.reset()
    step(venv, 3)
    os.kill(venv.env_method("pid", indices=0)[0], signal.SIGKILL)
    assert venv.get_attr("count") == [0, 0, 3, 3]
    observations, _, dones, infos = step(venv)
    assert dones.tolist() == [True, True, False, False]
    assert observations.tolist() == [[0, 0], [0, 1], [4, 2], [4, 3]]
    assert infos[1]["terminal_observation"].tolist() == [3, 1]
    os.kill(venv.env_method("pid", indices=3)[0], signal.SIGKILL)
    venv.seed(7)
    venv.reset()
    assert [seeds[-1] for seeds in venv.get_attr("seeds")] == [7, 8, 9, 10]
    _, _, dones, _ = step(venv)
    assert not dones.any()
    venv.close()


def test_restarts_are_counted_and_the_last_loss_ends_everything():
    venv = make(Steady, max_restarts=2)
    venv.reset()
    for _ in range(2):
        os.kill(venv.env_method("pid", indices=0)[0], signal.SIGKILL)
        step(venv)
    pids = set(venv.env_method("pid"))
    os.kill(venv.env_method("pid", indices=0)[0], signal.SIGKILL)
    with pytest.raises(ActorError, match=r"environments 0 to 1 were lost 3 times, and max_restarts is 2"):
        step(venv)
    assert all(ended_within(pid, 5) for pid in pids)


def test_a_crash_at_every_reset_ends_with_the_cause():
    """Case C12: restarts do not go on for ever."""
    venv = make(CrashingAtReset, max_restarts=1, environment={"who": 3})
    with pytest.raises(ActorError, match=r"environments 2 to 3 were lost 2 times.*environment 3 was at work.*actor has died"):
        venv.reset()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stuck_environment_is_replaced_after_the_timeout(tmp_path, transport, caplog):
    """Case C3: an environment that blocks for ever is reported and replaced."""
    venv = make(Stuck, transport=transport, step_timeout=3.0, environment={"at": 3, "who": 2, "flag": str(tmp_path / "stuck")})
    venv.reset()
    stuck = venv.env_method("pid", indices=2)[0]
    step(venv, 2)
    start = time.monotonic()
    _, _, dones, infos = step(venv)
    assert 3 < time.monotonic() - start < 30
    assert dones.tolist() == [False, False, True, True]
    assert infos[2]["env_restarted"]
    assert "does not answer" in caplog.text
    if transport == "shared":
        assert "environment 2 was at work" in caplog.text
    assert not is_running(stuck)
    venv.close()


def test_a_stopped_process_is_replaced_too():
    venv = make(Steady, step_timeout=2.0)
    venv.reset()
    pid = venv.env_method("pid", indices=0)[0]
    os.kill(pid, signal.SIGSTOP)
    _, _, dones, _ = step(venv)
    assert dones.tolist() == [True, True, False, False]
    assert not is_running(pid)
    venv.close()


@pytest.mark.parametrize("env_class", [WithChild, WithServer])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_children_of_environments_end_with_them_and_hide_no_death(transport, env_class):
    """Case C1: an environment may start processes, which Ray's workers allow, and none is left."""
    venv = make(env_class, transport=transport)
    venv.reset()
    first = venv.get_attr("child")
    assert all(is_running(child) for child in first)
    os.kill(venv.env_method("pid", indices=0)[0], signal.SIGKILL)
    _, _, dones, _ = step(venv)
    assert dones.tolist() == [True, True, False, False]
    assert all(ended_within(child, 5) for child in first[:2])
    second = venv.get_attr("child")
    venv.close()
    assert not any(is_running(child) for child in second)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_child_of_a_stuck_environment_ends_with_it(tmp_path, transport):
    environment = {"at": 2, "who": 1, "flag": str(tmp_path / "stuck")}
    venv = make(StuckWithServer, transport=transport, step_timeout=3.0, environment=environment)
    venv.reset()
    children = venv.get_attr("child")
    _, _, dones, _ = step(venv, 2)
    assert dones.tolist() == [True, True, False, False]
    assert not any(is_running(child) for child in children[:2])
    assert all(is_running(child) for child in children[2:])
    venv.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_close_leaves_nothing(transport):
    before, memory = open_descriptors(), shared_memory()
    venv = make(Steady, transport=transport)
    pids = set(venv.env_method("pid"))
    venv.reset()
    step(venv)
    sockets = our_sockets(os.getpid(), *pids)
    assert bool(sockets) == (transport == "shared")
    venv.close()
    venv.close()
    assert not any(is_running(pid) for pid in pids)
    assert not sockets & our_sockets()
    if transport == "shared":
        assert shared_memory() == memory
        assert open_descriptors() <= before + 1  # Ray opens some of its own
    for use in (venv.reset, venv.step_wait, lambda: venv.get_attr("level"), lambda: step(venv)):
        with pytest.raises(RuntimeError):
            use()


def test_close_in_the_middle_of_a_step_and_of_a_stuck_one(tmp_path):
    for env_class in (Steady, Stuck):
        venv = make(env_class, environment={"at": 1, "who": 0, "flag": str(tmp_path / "stuck")})
        pids = set(venv.env_method("pid"))
        venv.reset()
        venv.step_async(np.zeros(N_ENVS, np.int64))
        start = time.monotonic()
        venv.close()
        assert time.monotonic() - start < 10
        assert not any(is_running(pid) for pid in pids)


def test_an_interrupt_in_the_middle_of_a_step_leaves_everything_usable(tmp_path):
    venv = make(Stuck, environment={"at": 3, "who": 1, "flag": str(tmp_path / "stuck")})
    pids = venv.env_method("pid")
    venv.reset()
    step(venv, 2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    interrupt = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        step(venv)
    signal.signal(signal.SIGINT, before)
    os.kill(pids[1], signal.SIGKILL)
    observations, _, dones, _ = step(venv)
    assert observations.tolist() == [[0, 0], [0, 1], [4, 2], [4, 3]]
    assert dones.tolist() == [True, True, False, False]
    venv.close()
    assert not any(is_running(pid) for pid in pids)


def test_a_close_that_fails_is_told_and_the_others_are_closed():
    venv = make(FailingClose, environment={"who": 1})
    pids = set(venv.env_method("pid"))
    with pytest.raises(EnvError, match="environment 1 failed in close: OSError: will not"):
        venv.close()
    assert not any(is_running(pid) for pid in pids)
    venv.close()


AFTER_RAY = """
import numpy as np
import ray
from functools import partial
from vec.fault_envs import Steady
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

ray.init(address="local", num_cpus=4, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
venvs = [RayVecEnv([partial(Steady, 0)], envs_per_actor=1, transport=how) for how in ("shared", "calls")]
pids = {pid for venv in venvs for pid in venv.env_method("pid")}
ray.shutdown()
for venv in venvs:
    venv.close()
assert not ray.is_initialized()
print(*pids)
"""


@pytest.mark.slow
def test_what_is_closed_after_ray_was_shut_down_starts_no_other(tmp_path):
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}
    words = [sys.executable, "-c", AFTER_RAY]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


def test_opening_and_closing_again_and_again_keeps_nothing():
    make(Steady, envs_per_actor="auto").close()
    before, memory, threads = open_descriptors(), shared_memory(), threading.active_count()
    for _ in range(5):
        venv = make(Steady, envs_per_actor="auto")
        venv.reset()
        step(venv, 1000)
        venv.close()
    # Ray opens some of its own.
    assert open_descriptors() <= before + 3
    assert shared_memory() == memory
    assert threading.active_count() == threads


def test_actors_see_no_gpu_use_one_thread_and_stand_back_no_more_than_the_learner():
    venv = make(Steady, envs_per_actor=4, num_cpus_per_actor=2)
    assert venv.env_method("environment", "CUDA_VISIBLE_DEVICES") == [""] * N_ENVS
    assert venv.env_method("environment", "OMP_NUM_THREADS") == ["1"] * N_ENVS
    if os.geteuid() == 0:  # others may only stand back further
        assert venv.env_method("niceness") == [os.getpriority(os.PRIO_PROCESS, 0)] * N_ENVS
    venv.close()


LEARNER = Path(__file__).with_name("learner_process.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "env_class"),
    [
        (signal.SIGKILL, "WithChild"),
        (signal.SIGKILL, "WithServer"),
        (signal.SIGINT, "WithChild"),
        (signal.SIGTERM, "WithServer"),
    ],
)
def test_the_learners_end_leaves_nothing(number, env_class, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_AUTH_MODE": "disabled"}
    process = subprocess.Popen(
        [sys.executable, str(LEARNER), env_class], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    try:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 6
        assert all(is_running(pid) for pid in pids)
        assert process.stdout.readline() == "stepping\n"
        sockets = our_sockets(process.pid, *pids[:2])
        process.send_signal(number)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
    assert all(ended_within(pid, 15) for pid in pids)
    assert not sockets & our_sockets()
