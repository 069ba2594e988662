"""`--async-eval`: evaluations in an actor have the results of those that training waits for, each once, whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import ray
import training_process as tp
from stable_baselines3.common.callbacks import BaseCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.save_util import load_from_pkl, load_from_zip_file
from vec.processes import ended_within, is_running

from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.async_evaluations import find_async_evaluations
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.vec.failures import ActorError

pytestmark = pytest.mark.usefixtures("ray_instance")

NET = {"net_arch": [8]}
PPO = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "policy_kwargs": NET}
SHORT = {"env_kwargs": {"max_episode_steps": 20}}
CASES = {
    "ppo": ("ppo", "Pendulum-v1", {**PPO, "normalize": True, "n_envs": 2}, SHORT),
    "dqn": ("dqn", "CartPole-v1", {"learning_starts": 20, "batch_size": 8, "buffer_size": 300, "policy_kwargs": NET}, {}),
    "ars": ("ars", "Pendulum-v1", {"n_delta": 2, "n_envs": 2, "normalize": "dict(norm_reward=False)"}, SHORT),
    "ppo_lstm": ("ppo_lstm", "CartPole-v1", {**PPO, "policy_kwargs": {**NET, "lstm_hidden_size": 8}}, {}),
    "ppo_mask": ("ppo_mask", "TinyMasked-v0", PPO, {}),
}


def manager(folder, algo="ppo", env_id="TinyCount-v0", hyperparams=PPO, **settings):
    given = {"n_timesteps": 256, "eval_freq": 60, "n_eval_episodes": 3, "n_eval_envs": 2, "seed": 3, "verbose": 0}
    given |= {"device": "cpu", "num_threads": 1, "vec_env_type": "dummy", "gym_packages": ("tiny_envs", "slow_envs")}
    return ExperimentManager(None, algo, env_id, str(folder), hyperparams=dict(hyperparams), **{**given, **settings})


def train(made, prepare=None):
    """Trains to the end; the model."""
    model = made.setup_experiment()
    if prepare is not None:
        prepare(find_async_evaluations(made.rl_callbacks))
    made.learn(model)
    made.save_trained_model(model)
    return model


def best(run):
    """Weights and statistics of the best model."""
    data, parameters, _ = load_from_zip_file(run.best, device="cpu")
    statistics = [vars(load_from_pkl(run.best_statistics).obs_rms)] if run.best_statistics.exists() else []
    return [parameters, data["num_timesteps"], statistics]


def evaluated(run):
    """The rows of metrics.csv with an evaluation, by env step."""
    return {int(row["step"]): row["eval/mean_reward"] for row in tp.metrics(run.path) if row.get("eval/mean_reward")}


@pytest.mark.parametrize("name", CASES)
def test_results_best_model_and_training_are_those_of_a_run_that_waits(name, tmp_path):
    algo, env_id, hyperparams, settings = CASES[name]
    runs = []
    for is_async in (False, True):
        made = manager(tmp_path / str(is_async), algo, env_id, hyperparams, async_eval=is_async, **settings)
        # The policy's mode tells little of a network that has hardly learnt; sampling shows the streams, too.
        made.deterministic_eval = name in ("ppo", "ars")
        model = train(made)
        runs.append((made.run, model.get_parameters(), dict(np.load(made.run.evaluations))))
    (waiting, weights, values), (ours, our_weights, our_values) = runs
    assert len(values["timesteps"]) >= 4
    assert tp.differences(values, our_values) == []
    assert tp.differences(weights, our_weights) == []
    assert tp.differences(best(waiting), best(ours)) == []
    assert evaluated(waiting) == evaluated(ours)
    steps = [int(row["step"]) for row in tp.metrics(ours.path)]
    assert steps == sorted(set(steps))
    assert not list(ours.path.glob("pending*"))
    model, env = load_run(ours.path, "best", device="cpu")
    assert model.num_timesteps in values["timesteps"]
    env.close()


class Elsewhere(BaseCallback):
    """Notes at each env step how many evaluations are under way, and what the actor is."""

    def __init__(self):
        super().__init__()
        self.under_way = []

    def _on_step(self):
        evaluations = self.parent_evaluations
        self.under_way.append(len(evaluations.evaluator.steps))
        return True


def test_training_goes_on_meanwhile_and_waits_for_the_third_and_at_its_end(tmp_path):
    """Evaluations take 0.2 s each; the 128 env steps between two of them take a fraction of that."""
    watch = Elsewhere()
    made = manager(
        tmp_path, env_id="Slow-v0", eval_env_kwargs={"seconds": 0.02}, async_eval=True, eval_freq=128, n_timesteps=640,
        n_eval_episodes=2, n_eval_envs=1, callbacks=[watch],
    )  # fmt: skip
    pids = []

    def prepare(evaluations):
        watch.parent_evaluations = evaluations
        pids.append(evaluations.evaluator.pid)

    train(made, prepare)
    assert max(watch.under_way) == 2
    assert pids[0] != os.getpid()
    assert not is_running(pids[0])
    history = read_evaluations(made.run.evaluations)
    assert history["timesteps"] == [128, 256, 384, 512, 640]
    assert history["results"] == [[15.0, 15.0]] * 5


def test_the_actor_has_one_thread_and_sees_no_gpu(tmp_path):
    made = manager(tmp_path, env_id="TinyTelling-v0", async_eval=True, eval_freq=256)
    train(made)
    # Five steps, each worth a thread and a hundred for a GPU that could be seen.
    assert read_evaluations(made.run.evaluations)["results"] == [[5.0] * 3]


@pytest.mark.parametrize("kind", ["new best", "after evaluation", "early stopping"])
def test_what_ends_a_training_ends_it_when_the_result_is_there(kind, tmp_path):
    class Stop(BaseCallback):
        def _on_step(self):
            return False

    early = pl.callbacks.EarlyStopping("eval/mean_reward", stopping_threshold=10.0, mode="max")
    callbacks = [early] if kind == "early stopping" else []
    made = manager(tmp_path, async_eval=True, n_timesteps=10_000_000, eval_freq=1000, callbacks=callbacks)

    def prepare(evaluations):
        if kind == "new best":
            evaluations.callback_on_new_best = StopTrainingOnRewardThreshold(10.0)
            evaluations.callback_on_new_best.parent = evaluations
        elif kind == "after evaluation":
            evaluations.callback = Stop()
            evaluations.callback.parent = evaluations

    model = train(made, prepare)
    assert 1000 < model.num_timesteps < 1_000_000
    history = read_evaluations(made.run.evaluations)
    # Those under way are recorded, too.
    assert history["timesteps"] == [1000 * (i + 1) for i in range(len(history["timesteps"]))]
    assert 1 <= len(history["timesteps"]) <= 3
    assert tp.checkpoints(made.run.path) == [model.num_timesteps]


def test_an_env_that_fails_in_the_actor_ends_the_run_with_its_own_traceback(tmp_path):
    made = manager(tmp_path, env_id="TinyFailing-v0", eval_env_kwargs={"at": 12}, async_eval=True, n_timesteps=100_000)
    with pytest.raises(ValueError, match="out of order") as caught:
        train(made)
    (note,) = caught.value.__notes__
    assert "environment 0 in an evaluation" in note
    assert "tiny_envs.py" in note
    assert made._eval_env is None


def test_an_env_that_cannot_be_built_in_the_actor_is_bad_input(tmp_path):
    made = manager(tmp_path, env_id="TinyFailing-v0", eval_env_kwargs={"what": "build"}, async_eval=True)
    with pytest.raises(ConfigError, match="environment 'TinyFailing-v0' cannot be built: ValueError: no such simulator"):
        train(made)


def test_an_actor_that_dies_is_replaced_and_its_evaluation_done_again(tmp_path, caplog):
    once = str(tmp_path / "once")
    # The first evaluation has thirty steps, and the process dies in the second.
    made = manager(
        tmp_path, env_id="TinyFailing-v0", async_eval=True, n_eval_envs=1,
        eval_env_kwargs={"at": 20, "what": "kill", "once": once},
    )  # fmt: skip
    train(made)
    assert "the evaluation actor has died in the evaluation at 120 env steps" in caplog.text
    history = read_evaluations(made.run.evaluations)
    assert history["timesteps"] == [60, 120, 180, 240]
    assert history["results"] == [[15.0] * 3] * 4


def test_an_actor_that_dies_twice_of_the_same_ends_the_run(tmp_path):
    made = manager(tmp_path, env_id="TinyFailing-v0", async_eval=True, eval_env_kwargs={"at": 3, "what": "kill"})
    with pytest.raises(ActorError, match="has died 2 times in the evaluation at 60 env steps"):
        train(made)


def test_a_study_has_no_evaluations_on_the_side(tmp_path):
    with pytest.raises(ConfigError, match="--async-eval with a study"):
        manager(tmp_path, async_eval=True, optimize_hyperparameters=True)


def test_a_cpu_that_ray_can_never_give_is_refused_before_anything_starts(tmp_path):
    made = manager(tmp_path, async_eval=True, vec_env_type="ray", n_envs=4, envs_per_actor=1, env_cpus=1.0)
    with pytest.raises(ConfigError, match="1 evaluation actor with 1 CPUs each need 5 CPUs, but Ray has 4"):
        made.setup_experiment()
    assert not list(tmp_path.iterdir())


# Stopped, killed, gone on with. These run in processes of their own, all on this test run's Ray.

STEPS = ("--algo", "ppo", "--env", "Slow-v0", "--gym-packages", "slow_envs", "--seed", "4", "--vec-env", "dummy")
HYPERPARAMS = ("-params", "n_steps:32", "batch_size:32", "n_epochs:1", "policy_kwargs:dict(net_arch=[8])")
EVERY = ("--eval-freq", "80", "--eval-episodes", "2", "--save-freq", "128", "-n", "512", "--async-eval")
WORDS = (*STEPS, *EVERY, *HYPERPARAMS)


@pytest.fixture
def variables():
    return {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "RAY_AUTH_MODE": "disabled"}


def evaluation_actors():
    """The processes that play evaluations, which Ray names after the method at work."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith("ray::EvaluationActor"):
                found.add(int(path.parent.name))
    return found


def steps_of(run):
    return read_evaluations(run / "evaluations.npz")["timesteps"]


def test_a_signal_does_not_wait_for_an_evaluation_which_is_done_when_the_run_goes_on(tmp_path, variables):
    """An evaluation takes 10 s."""
    slow = ("--eval-env-kwargs", "seconds:1.0")
    training = tp.start(tmp_path, [*WORDS, *slow, "-n", "100000000"], variables=variables)
    run = training.wait_until(lambda: next(iter(tmp_path.glob("logs/*/*_1/pending*160.zip")), None)).parent
    begun = time.monotonic()
    training.send(signal.SIGTERM)
    assert training.wait() == 143, training.log.read_text()
    assert time.monotonic() - begun < 5
    at = tp.checkpoints(run)[-1]
    left = sorted(path.name for path in (run / "checkpoints" / str(at)).glob("pending*"))
    assert left[0] == "pending_evaluation_160.zip" or left[-1] == "pending_evaluation_80.zip"
    assert not list(run.glob("pending*"))
    # Gone on with, evaluations are quick.
    args = run / "Slow-v0" / "args.yml"
    args.write_text(args.read_text().replace("seconds: 1.0", "seconds: 0.0"))
    tp.resume(run, "-n", str(at + 64), variables=variables)
    assert steps_of(run) == list(range(80, at + 65, 80))


def test_a_run_that_was_killed_does_each_evaluation_once(tmp_path, variables):
    whole = tp.start(tmp_path / "whole", WORDS, variables=variables)
    assert whole.wait() == 0, whole.log.read_text()
    killed = tp.start(tmp_path / "killed", WORDS, [tp.SignalAt(signal.SIGKILL, 300)], variables=variables)
    assert killed.wait() == -signal.SIGKILL, killed.log.read_text()
    run = tp.only_run(tmp_path / "killed")
    assert tp.checkpoints(run)[-1] in (128, 256)
    tp.resume(run, variables=variables)
    assert steps_of(run) == steps_of(tp.only_run(tmp_path / "whole")) == [80, 160, 240, 320, 400, 480]
    evaluations = [int(row["step"]) for row in tp.metrics(run) if row["eval/mean_reward"]]
    assert evaluations == [80, 160, 240, 320, 400, 480]


def test_after_kill_9_of_the_learner_the_actor_ends(tmp_path, variables):
    slow = ("--eval-env-kwargs", "seconds:1.0")
    others = evaluation_actors()
    training = tp.start(tmp_path, [*WORDS, *slow, "-n", "100000000"], variables=variables)
    training.wait_until(lambda: next(iter(tmp_path.glob("logs/*/*_1/pending*160.zip")), None))
    pids = evaluation_actors() - others
    training.kill()
    assert pids
    assert all(ended_within(pid, 20) for pid in pids)


def test_evaluations_left_by_the_end_are_done_where_nothing_else_is(tmp_path, variables):
    """The signal comes when the training is over and its last evaluation is not."""
    slow = ("--eval-env-kwargs", "seconds:1.0", "-n", "96")
    training = tp.start(tmp_path, [*WORDS, *slow], variables=variables)
    run = training.wait_until(lambda: next(iter(tmp_path.glob("logs/*/*_1/pending*80.zip")), None)).parent
    training.wait_until(lambda: len(tp.episodes(run)) >= 19)
    training.send(signal.SIGTERM)
    assert training.wait() == 143, training.log.read_text()
    if tp.checkpoints(run) == [96]:
        args = run / "Slow-v0" / "args.yml"
        args.write_text(args.read_text().replace("seconds: 1.0", "seconds: 0.0"))
        tp.resume(run, variables=variables)
        assert steps_of(run) == [80]
        assert (run / "best_model.zip").exists()
        assert (run / "checkpoints" / "96" / "best_model.zip").exists()


def test_it_can_be_turned_on_when_a_run_goes_on(tmp_path, variables):
    words = [word for word in WORDS if word != "--async-eval"]
    stopped = tp.start(tmp_path, words, [tp.SignalAt(signal.SIGTERM, 200)], variables=variables)
    assert stopped.wait() == 143, stopped.log.read_text()
    run = tp.resume(tp.only_run(tmp_path), "--async-eval", variables=variables)
    assert steps_of(run) == [80, 160, 240, 320, 400, 480]
    assert load_run(run, "best", device="cpu")[0].num_timesteps in steps_of(run)
