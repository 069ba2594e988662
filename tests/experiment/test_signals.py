"""SIGTERM and Ctrl-C: training is saved within five seconds at an iteration boundary, and goes on from there."""

import signal
import threading
import time

import pytest
import training_process as tp

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.lit.stop import PATIENCE

WITHIN = 5.0
NET = "policy_kwargs:dict(net_arch=[16])"
SLOW = ("--gym-packages", "slow_envs", "--seed", "5")
PPO = ("--algo", "ppo", *SLOW, "--eval-freq", "-1", "-params", "batch_size:32", "n_epochs:1", NET)


def start(folder, *words, callbacks=()):
    """Starts a training; it, and its run folder once episodes are recorded there."""
    training = tp.start(folder, words, callbacks)
    run = training.wait_until(lambda: next(iter(folder.glob("logs/*/*_1/0.monitor.csv")), None)).parent
    return training, run


def stop(training, signum=signal.SIGTERM):
    """Sends the signal; the exit code, and the seconds to the end."""
    begun = time.monotonic()
    training.send(signum)
    return training.wait(), time.monotonic() - begun


def length(run):
    """Env steps in the episodes that have ended."""
    return sum(int(row[2]) for row in tp.episodes(run))


def assert_goes_on(run, total, model):
    """The run goes on to a total from where it was stopped; nothing of what was given up is in its files."""
    at = tp.checkpoints(run)[-1]
    assert tp.weights(run / f"{model}.zip")["counters"]["num_timesteps"] == at
    tp.resume(run, "-n", str(total))
    assert tp.weights(run / f"{model}.zip")["counters"]["num_timesteps"] >= total
    steps = [int(row["step"]) for row in tp.metrics(run)]
    assert steps == sorted(set(steps))
    assert length(run) <= total


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_d4_a_signal_saves_and_sets_the_exit_code(signum, code, tmp_path):
    words = (*PPO, "n_steps:32", "normalize:True", "--env", "Pendulum-v1", "--env-kwargs", "max_episode_steps:20")
    training, run = start(tmp_path, *words, "-n", "100000000")
    training.wait_until(lambda: length(run) > 400)
    ended, seconds = stop(training, signum)
    assert ended == code
    assert seconds < WITHIN
    assert "Go on with: lit-sb3-ray train --resume logs/ppo/Pendulum-v1_1" in training.log.read_text()
    (at,) = tp.checkpoints(run)
    assert at % 32 == 0
    assert_goes_on(run, at + 64, "Pendulum-v1")


def test_a_rollout_that_is_known_to_take_long_is_given_up_at_once(tmp_path):
    training, run = start(tmp_path, *PPO, "n_steps:48", "--env", "Slow-v0", "--env-kwargs", "seconds:0.05", "-n", "1000")
    training.wait_until(lambda: length(run) >= 60)
    code, seconds = stop(training)
    assert code == 143
    assert seconds < 2
    assert tp.checkpoints(run) == [48]
    assert_goes_on(run, 96, "Slow-v0")
    # 9 whole episodes of 5 steps were in the first rollout, 9 in that of the resumed run; the 3 given up are gone.
    assert length(run) == 90


def test_a_rollout_that_has_become_long_gets_its_time_first(tmp_path):
    words = (*PPO, "n_steps:200", "--env", "Slow-v0", "--env-kwargs", "fast:200", "seconds:0.05", "-n", "20000")
    training, run = start(tmp_path, *words)
    training.wait_until(lambda: length(run) >= 205)
    code, seconds = stop(training)
    assert code == 143
    assert PATIENCE < seconds < WITHIN
    assert tp.checkpoints(run) == [200]
    assert_goes_on(run, 400, "Slow-v0")
    assert length(run) == 400


def test_the_first_rollout_is_given_up_too(tmp_path):
    training, run = start(tmp_path, *PPO, "n_steps:10000", "--env", "Slow-v0", "--env-kwargs", "seconds:0.05", "-n", "20000")
    training.wait_until(lambda: length(run) >= 20)
    code, seconds = stop(training)
    assert (code, seconds < WITHIN) == (143, True)
    assert tp.checkpoints(run) == [0]


@pytest.mark.parametrize("seconds_a_step", [0.01, 0.0])
def test_an_env_that_hangs_is_given_up(seconds_a_step, tmp_path):
    """With slow iterations the last boundary is kept; with fast ones one that is younger than a second."""
    hangs_at = 200 if seconds_a_step else 2000
    words = (*PPO, "n_steps:32", "--env", "Hanging-v0", "--env-kwargs", f"at:{hangs_at}", f"seconds:{seconds_a_step}")
    training, run = start(tmp_path, *words, "-n", "4000")
    training.wait_until(lambda: length(run) >= hangs_at - 5)
    code, seconds = stop(training)
    assert code == 143
    assert seconds < WITHIN
    (at,) = tp.checkpoints(run)
    assert at == 192 if seconds_a_step else at % 32 == 0
    assert_goes_on(run, at + 64, "Hanging-v0")


def test_an_update_that_takes_minutes_is_given_up(tmp_path):
    words = ("n_steps:32", "n_epochs:1000000", "--env", "Slow-v0", "-n", "1000")
    training, run = start(tmp_path, *PPO, *words)
    training.wait_until(lambda: length(run) >= 30)
    code, seconds = stop(training)
    assert (code, seconds < WITHIN) == (143, True)
    assert tp.checkpoints(run) == [0]


def test_an_update_after_an_episode_is_given_up_and_its_transitions_with_it(tmp_path):
    words = (
        *("--algo", "sac", *SLOW, "--eval-freq", "-1", "-n", "100000", "--log-interval", "1", "--env", "Growing-v0"),
        *("--env-kwargs", "short:4", "seconds:0.06", "length:5000", "-params", "learning_starts:10", "batch_size:32"),
        *("train_freq:[1,'episode']", "gradient_steps:-1", "buffer_size:20000", "policy_kwargs:dict(net_arch=[16])"),
    )
    training, run = start(tmp_path, *words)
    training.wait_until(lambda: length(run) >= 5020)
    code, seconds = stop(training)
    assert (code, seconds < WITHIN) == (143, True)
    assert tp.checkpoints(run) == [20]
    assert tp.load_from_pkl(run / "checkpoints" / "20" / "replay_buffer.pkl")["pos"] == 20
    assert_goes_on(run, 35, "Growing-v0")
    assert tp.load_from_pkl(run / "checkpoints" / "35" / "replay_buffer.pkl")["pos"] == 35
    assert length(run) == 35


def test_a_best_model_of_the_rollout_given_up_is_not_the_checkpoint_s(tmp_path):
    """The evaluation at step 64 falls in the second rollout, which hangs after it."""
    words = (*PPO, "n_steps:48", "--env", "Hanging-v0", "--env-kwargs", "at:80", "seconds:0.01", "-n", "1000")
    words = (*words, "--eval-freq", "32", "--eval-episodes", "1", "--eval-env-kwargs", "at:100000")
    training, run = start(tmp_path, *words)
    training.wait_until(lambda: length(run) >= 75)
    assert read_evaluations(run / "evaluations.npz")["timesteps"] == [32, 64]
    kept = tp.weights(run / "best_model.zip")
    assert stop(training)[0] == 143
    assert tp.differences(kept, tp.weights(run / "checkpoints" / "48" / "best_model.zip")) == []
    assert_goes_on(run, 96, "Hanging-v0")
    assert read_evaluations(run / "evaluations.npz")["timesteps"] == [32, 64, 96]


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    words = (*PPO, "n_steps:32", "--env", "Hanging-v0", "--env-kwargs", "at:96", "-n", "1000")
    training, run = start(tmp_path, *words)
    training.wait_until(lambda: length(run) >= 95)
    begun = time.monotonic()
    while training.process.is_alive():
        training.send(signal.SIGINT)
        training.process.join(0.05)
    assert training.wait() == 130
    assert time.monotonic() - begun < 1.5
    assert tp.checkpoints(run) == []


@pytest.mark.parametrize("hook", ["setup", "on_fit_start", "on_train_start", "on_train_batch_end", "on_train_end"])
def test_sigterm_while_lightning_is_at_work(hook, tmp_path):
    words = (*PPO, "n_steps:32", "--env", "Slow-v0", "-n", "64")
    training = tp.start(tmp_path, words, [tp.SignalIn(hook)])
    assert training.wait() == 143, training.log.read_text()
    run = tp.only_run(tmp_path)
    at = tp.checkpoints(run)[-1]
    assert at == {"on_train_batch_end": 32, "on_train_end": 64}.get(hook, 0)
    assert tp.weights(tp.resume(run, "-n", "96") / "Slow-v0.zip")["counters"]["num_timesteps"] == 96


def test_i3_training_in_a_thread_leaves_the_signals_alone(tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    steps = []

    def train():
        manager = ExperimentManager(
            None, "ppo", "CartPole-v1", str(tmp_path), n_timesteps=128, eval_freq=-1, verbose=0, device="cpu",
            hyperparams={"n_steps": 32, "n_envs": 2, "batch_size": 32},
        )  # fmt: skip
        model = manager.setup_experiment()
        manager.learn(model)
        manager.save_trained_model(model)
        steps.append(model.num_timesteps)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join(60)
    assert steps == [128]
    assert tp.checkpoints(tmp_path / "ppo" / "CartPole-v1_1") == [128]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before
