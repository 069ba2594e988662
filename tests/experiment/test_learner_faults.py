"""Several learners, one of which is lost or goes its own way, or which are stopped: none waits for one that has left."""

from __future__ import annotations

import os
import pickle
import signal

import pytest
import training_process as tp
from learner_processes import learner_pids
from learner_runs import SMALL, Do, SignalInUpdate, manager, train
from stable_baselines3.common.save_util import load_from_pkl
from vec.processes import ended_within

from lit_sb3_ray.errors import LearnerError


@pytest.mark.usefixtures("ray_instance")
def test_what_changes_the_model_in_one_learner_alone_is_noticed(tmp_path):
    def change(model):
        for weight in model.policy.parameters():
            weight.data += 0.1

    made = manager(tmp_path, callbacks=[Do(200, change)])
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match="weights have come apart"):
        made.learn(model)
    assert learner_pids() == set()


@pytest.mark.usefixtures("ray_instance")
def test_a_killed_learner_ends_the_run_which_goes_on_from_its_checkpoint(tmp_path):
    def kill(model):
        (pid,) = learner_pids()
        os.kill(pid, signal.SIGKILL)

    made = manager(tmp_path, save_freq=128, n_timesteps=100_000, callbacks=[Do(300, kill)])
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match=r"learner 1 .* has died: .*Go on with: lit-sb3-ray train --resume"):
        made.learn(model)
    assert tp.checkpoints(made.run.path) == [128, 256]
    resumed = manager(tmp_path, n_timesteps=512, resume=str(made.run.path))
    assert train(resumed).num_timesteps == 512


def kill_the_other(*_):
    for pid in learner_pids():
        os.kill(pid, signal.SIGKILL)


def in_an_update(made, model):
    """Before the step of an optimizer, with more passes to come."""
    model.policy.optimizer.register_step_pre_hook(kill_the_other)


def in_an_evaluation(made, model):
    made._eval_env.venv.reset, reset = lambda: (kill_the_other(), reset())[1], made._eval_env.venv.reset


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("when", [in_an_update, in_an_evaluation])
def test_a_learner_may_be_killed_at_any_time(when, tmp_path):
    hyperparams = {**SMALL, "n_epochs": 5, "normalize": True}
    made = manager(tmp_path, hyperparams=hyperparams, n_timesteps=100_000)
    model = made.setup_experiment()
    when(made, model)
    with pytest.raises(LearnerError, match=r"learner 1 .* has died"):
        made.learn(model)
    assert learner_pids() == set()


@pytest.mark.usefixtures("ray_instance")
def test_an_env_that_ends_another_learner_is_told(tmp_path):
    made = manager(tmp_path, env_id="TinyUnlucky-v0", env_kwargs={"unlucky": 3 + 2, "what": "exit"}, n_timesteps=10_000)
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match=r"learner 1 "):
        made.learn(model)
    assert learner_pids() == set()


@pytest.mark.usefixtures("ray_instance")
def test_an_env_that_fails_in_another_learner_is_told(tmp_path, caplog):
    """The second learner's envs have other seeds, and one of them is not liked."""
    made = manager(tmp_path, env_id="TinyUnlucky-v0", env_kwargs={"unlucky": 3 + 2}, n_timesteps=10_000)
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match=r"learner 1 .* has failed: ValueError: boom"):
        made.learn(model)
    assert learner_pids() == set()


# Processes of their own


@pytest.fixture
def variables(ray_instance):
    import ray

    return {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "RAY_AUTH_MODE": "disabled"}


STEPS = ("--gym-packages", "slow_envs", "--seed", "5", "--vec-env", "dummy", "--eval-freq", "-1", "--devices", "2")
NETWORK = "policy_kwargs:dict(net_arch=[8])"
WORDS = {
    "ppo": (
        "--algo",
        "ppo",
        *STEPS,
        "-params",
        "n_steps:32",
        "batch_size:32",
        "n_epochs:1",
        NETWORK,
    ),
    "sac": (
        *("--algo", "sac", *STEPS, "-params", "learning_starts:40", "batch_size:16", "buffer_size:300", "train_freq:4"),
        *("gradient_steps:1", NETWORK, "noise_type:ornstein-uhlenbeck", "noise_std:0.2"),
    ),
}


def started(folder, words, variables):
    training = tp.start(folder, words, variables=variables)
    run = training.wait_until(lambda: next(iter(folder.glob("logs/*/*_1/0.monitor.csv")), None)).parent
    return training, run


@pytest.mark.parametrize("algo", WORDS)
def test_kill_9_after_a_checkpoint_and_a_stop_there_go_on_alike(algo, tmp_path, variables):
    words = (*WORDS[algo], "normalize:True", "n_envs:4", "--env", "Slow-v0", "--save-freq", "128", "-n", "384")
    ends = {"killed": (signal.SIGKILL, -signal.SIGKILL), "stopped": (signal.SIGTERM, 143)}
    found = {}
    for name, (signum, code) in ends.items():
        training = tp.start(tmp_path / name, words, [tp.SignalAt(signum, 250)], variables=variables)
        assert training.wait() == code, training.log.read_text()
        run = tp.only_run(tmp_path / name)
        if name == "stopped":
            last = tp.checkpoints(run)[-1]
            for later in [step for step in tp.checkpoints(run) if step > 128]:
                tp.shutil.rmtree(run / "checkpoints" / str(later))
            assert last >= 128
        assert tp.checkpoints(run) == [128]
        tp.resume(run, variables=variables)
        found[name] = tp.result(run)
        learner = run / "checkpoints" / str(tp.checkpoints(run)[-1])
        found[name]["own"] = [pickle.loads((learner / "learner_1.pkl").read_bytes())["rng"]]
        found[name]["buffers"] = [load_from_pkl(path) for path in sorted(learner.glob("replay_buffer*"))]
    assert tp.differences(found["killed"], found["stopped"]) == []
    assert found["killed"]["checkpoint"]["counters"]["num_timesteps"] >= 384
    assert len(found["killed"]["buffers"]) == (0 if algo == "ppo" else 2)


@pytest.mark.parametrize(
    ("signum", "length", "seconds"),
    [(signal.SIGINT, 32, 0.0), (signal.SIGTERM, 20_000, 0.0), (signal.SIGTERM, 64, 0.4)],
    ids=["short iterations", "long rollouts", "slow steps"],
)
def test_a_signal_stops_all_learners_within_five_seconds(signum, length, seconds, tmp_path, variables):
    steps = ("--env", "Slow-v0", "--env-kwargs", f"seconds:{seconds}", "fast:70", "-n", "100000000")
    words = (*WORDS["ppo"], *steps, "-params", f"n_steps:{length}", "n_envs:2", "normalize:True")
    training, run = started(tmp_path, words, variables)
    training.wait_until(lambda: len(tp.episodes(run)) > 10 or (length > 64 and learner_pids()))
    pids = learner_pids()
    begun = tp.time.monotonic()
    training.send(signum)
    assert training.wait() == 128 + signum, training.log.read_text()
    assert tp.time.monotonic() - begun < 5
    assert pids
    assert all(ended_within(pid, 5) for pid in pids)
    (at,) = tp.checkpoints(run)[-1:]
    assert at % (2 * length) == 0
    assert at == 0 or (run / "checkpoints" / str(at) / "learner_1.pkl").stat().st_size > 0


def test_the_command_says_which_learner_is_lost_and_ends_with_1(tmp_path, variables):
    words = (*WORDS["ppo"], "n_envs:2", "--env", "Slow-v0", "-n", "100000000", "--save-freq", "64")
    training, run = started(tmp_path, words, variables)
    training.wait_until(lambda: tp.checkpoints(run))
    (pid,) = learner_pids()
    os.kill(pid, signal.SIGKILL)
    assert training.wait(30) == 1
    told = [line for line in training.log.read_text().splitlines() if line.startswith("lit-sb3-ray: error:")]
    assert len(told) == 1
    assert f"learner 1 (process {pid}) has died" in told[0]


def test_after_kill_9_of_the_first_learner_the_others_end(tmp_path, variables):
    words = (*WORDS["ppo"], "n_envs:2", "--env", "Slow-v0", "-n", "100000000", "--save-freq", "64")
    training, run = started(tmp_path, words, variables)
    training.wait_until(lambda: tp.checkpoints(run))
    pids = learner_pids()
    training.kill()
    assert pids
    assert all(ended_within(pid, 20) for pid in pids)


def test_a_signal_in_a_long_update_stops_all_learners_at_the_boundary_before_it(tmp_path, variables):
    words = (*WORDS["ppo"], "n_epochs:1000000000", "n_envs:2", "normalize:True", "--env", "Slow-v0", "-n", "100000")
    training = tp.start(tmp_path, words, [SignalInUpdate(signal.SIGTERM)], variables=variables)
    assert training.wait(60) == 143, training.log.read_text()
    run = tp.only_run(tmp_path)
    assert tp.checkpoints(run) == [0]
    assert (run / "checkpoints" / "0" / "learner_1.pkl").stat().st_size > 0


def test_a_signal_in_an_evaluation_stops_all_learners_at_a_boundary_before_it(tmp_path, variables):
    """The evaluation would take for ever; it comes in the middle of the second rollout."""
    evaluation = ("--eval-freq", "100", "--eval-env-kwargs", "signal_at:500", "length:1000000000")
    words = (*WORDS["ppo"], "n_envs:2", "--env", "TinyDrawn-v0", "--gym-packages", "tiny_envs", "-n", "100000", *evaluation)
    training = tp.start(tmp_path, words, variables=variables)
    assert training.wait(60) == 130, training.log.read_text()
    # Short iterations are not copied each.
    assert tp.checkpoints(tp.only_run(tmp_path)) in ([0], [64])


def test_a_second_ctrl_c_ends_all_learners_at_once(tmp_path, variables):
    words = (*WORDS["ppo"], "n_envs:2", "--env", "Slow-v0", "-n", "100000")
    twice = [tp.SignalAt(signal.SIGINT, step) for step in (200, 204)]
    training = tp.start(tmp_path, words, twice, variables=variables)
    assert training.wait(60) != 0
    assert "KeyboardInterrupt" in training.log.read_text()
    assert tp.checkpoints(tp.only_run(tmp_path)) == []


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "a learner killed"])
def test_what_happens_while_learners_start_is_heeded(signum, tmp_path, variables):
    training = tp.start(tmp_path, (*WORDS["ppo"], "n_envs:2", "--env", "Slow-v0", "-n", "100000000"), variables=variables)
    pids = training.wait_until(learner_pids)
    for pid in [training.process.pid] if signum == signal.SIGTERM else pids:
        os.kill(pid, signum)
    assert training.wait(60) == (143 if signum == signal.SIGTERM else 1), training.log.read_text()
    assert all(ended_within(pid, 5) for pid in pids)
    assert len(tp.checkpoints(tp.only_run(tmp_path))) == (signum == signal.SIGTERM)
