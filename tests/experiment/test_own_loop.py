"""A class that trains through its own `learn()` has run folder, evaluations, checkpoints, stops and resume."""

from __future__ import annotations

import json
import logging
import signal

import numpy as np
import pytest
import training_process
from own_algorithms import HillClimbing, LoudPPO, RandomSearch
from pytorch_lightning.callbacks import EarlyStopping
from stable_baselines3.common.callbacks import BaseCallback
from training_process import SignalAt, checkpoints, episodes, metrics

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.experiment.playback import play, summarize
from lit_sb3_ray.lit.iteration import is_driven

CLIMBER = {"policy": "LinearPolicy", "n_envs": 2, "n_steps": 10, "n_timesteps": 200}


@pytest.fixture
def conf(tmp_path):
    path = tmp_path / "climber.yml"
    path.write_text(json.dumps({"TinyCount-v0": {**CLIMBER, "normalize": True}, "CartPole-v1": {**CLIMBER, "n_steps": 100}}))
    return str(path)


@pytest.fixture
def make(tmp_path, conf):
    def manager(env_id="CartPole-v1", algo="own_algorithms:HillClimbing", **options):
        settings = {"eval_freq": -1, "seed": 3, "device": "cpu", "verbose": 0, "num_threads": 1, "config": conf} | options
        return ExperimentManager(None, algo, env_id, str(tmp_path / "logs"), **settings)

    return manager


def train(manager):
    model = manager.setup_experiment()
    manager.learn(model)
    manager.save_trained_model(model)
    return model, manager.run.path


def learned(run, env_id="TinyCount-v0"):
    """What a run has come to: weights, the algorithm's own state, statistics, and all logs without times."""
    model = HillClimbing.load(run / f"{env_id}.zip", device="cpu")
    state = json.loads((run / "checkpoints" / str(checkpoints(run)[-1]) / "state.json").read_text())
    with np.load(run / "evaluations.npz") as file:
        evaluations = {name: file[name] for name in file.files}
    return {
        "weights": model.policy.weights,
        "counters": [model.num_timesteps, model.best, model.tried],
        "callbacks": [entry for entry in state["callbacks"] if entry["class"] == "EvaluationCallback"],
        "iteration": state["iteration"],
        "rng": state["rng"],
        "evaluations": evaluations,
        "episodes": episodes(run),
        "metrics": metrics(run),
        "statistics": [vars(rms) for rms in (training_process.load_from_pkl(run / env_id / "vecnormalize.pkl").obs_rms,)],
    }


def test_trains_evaluates_and_saves_as_all_others_do(make, tmp_path):
    model, run = train(make(eval_freq=400, save_freq=400, n_timesteps=2000, loggers=["csv"]))
    assert not is_driven(model)
    assert run == tmp_path / "logs" / "own_algorithms-HillClimbing" / "CartPole-v1_1"
    names = {"CartPole-v1.zip", "best_model.zip", "evaluations.npz", "metrics.csv", "0.monitor.csv", "1.monitor.csv"}
    assert names | {f"rl_model_{steps}_steps.zip" for steps in range(400, 2001, 400)} <= {path.name for path in run.iterdir()}
    assert checkpoints(run) == [1600, 2000]
    assert [int(row["time/total_timesteps"]) for row in metrics(run) if row["eval/mean_reward"]] == [
        400,
        800,
        1200,
        1600,
        2000,
    ]
    assert (run / "csv" / "version_0" / "metrics.csv").read_text().count("\n") > 10
    for which in ("final", "best", 800):
        loaded, env = load_run(run, which, n_envs=2, device="cpu")
        assert isinstance(loaded, HillClimbing)
        assert summarize([episode for ended in play(loaded, env, 150) for episode in ended]).episodes > 0
        env.close()
    np.testing.assert_array_equal(load_run(run)[0].policy.weights, model.policy.weights)


def test_it_learns_what_its_own_learn_learns(make, conf):
    manager = make("TinyCount-v0")
    own = manager.setup_experiment()
    own.learn(200)
    trained, _ = train(make("TinyCount-v0", eval_freq=40, save_freq=40))
    np.testing.assert_array_equal(trained.policy.weights, own.policy.weights)


@pytest.mark.slow
def test_kill_and_resume_equals_stop_and_resume(tmp_path, conf):
    words = ["--algo", "own_algorithms:HillClimbing", "--env", "TinyCount-v0", "--conf-file", conf, "--seed", "3"]
    words += ["--save-freq", "40", "--eval-freq", "30", "--eval-episodes", "2", "--gym-packages", "tiny_envs"]
    killed = training_process.start(tmp_path / "killed", words, [SignalAt(signal.SIGKILL, 130)])
    assert killed.wait() == -signal.SIGKILL
    run = training_process.only_run(tmp_path / "killed")
    assert checkpoints(run) == [80, 120]
    assert not (run / "TinyCount-v0.zip").exists()
    training_process.resume(run)
    stopped = training_process.train(tmp_path / "stopped", [*words, "-n", "120"])
    training_process.resume(stopped, "-n", "200")
    assert training_process.differences(learned(run), learned(stopped)) == []
    assert learned(run)["evaluations"]["timesteps"].tolist() == [30, 60, 90, 120, 150, 180]
    steps = [int(row["time/total_timesteps"]) for row in metrics(run) if row["time/total_timesteps"]]
    assert steps == sorted(set(steps))


def test_resume_goes_on_with_the_algorithm_s_own_generator(make):
    """`load` would seed it anew; what was drawn before the checkpoint would be drawn again."""
    _, run = train(make("TinyCount-v0", n_timesteps=100))
    manager = make("TinyCount-v0", resume=str(run), n_timesteps=200)
    model = manager.setup_experiment()
    manager.learn(model)
    fresh = np.random.default_rng(3)
    for _ in range(10):
        fresh.normal(size=model.policy.weights.shape)
    assert model.generator.bit_generator.state == fresh.bit_generator.state


def test_a_signal_ends_training_at_the_next_boundary(make):
    manager = make("TinyCount-v0", callbacks=[SignalAt(signal.SIGTERM, 50)])
    model, run = train(manager)
    assert manager.stop_signal == signal.SIGTERM
    assert (model.num_timesteps, checkpoints(run)) == (60, [60])
    resumed, _ = train(make("TinyCount-v0", resume=str(run)))
    assert resumed.num_timesteps == 200


def test_a_signal_in_an_endless_iteration_goes_back_to_the_boundary_before_it(make):
    manager = make("TinyCount-v0", hyperparams={"n_steps": 10**9}, callbacks=[SignalAt(signal.SIGTERM, 50)])
    model, run = train(manager)
    assert (model.num_timesteps, checkpoints(run)) == (0, [0])
    assert not model.policy.weights.any()
    played = len(episodes(run))
    train(make("TinyCount-v0", resume=str(run), callbacks=[SignalAt(signal.SIGTERM, 50)]))
    assert len(episodes(run)) == played == 10, "those that belong to no checkpoint are cut when the run goes on"


class StopAt(BaseCallback):
    def _on_step(self):
        return self.num_timesteps < 70


def test_a_callback_ends_training(make):
    assert train(make("TinyCount-v0", callbacks=[StopAt()]))[0].num_timesteps == 70


def test_a_subclass_with_a_learn_of_its_own_is_given_it(make, conf):
    model = train(make("CartPole-v1", "own_algorithms:LoudPPO", config=None, n_timesteps=64, hyperparams={"n_steps": 8}))[0]
    assert isinstance(model, LoudPPO)
    assert model.learned == 1


def test_what_needs_lightning_s_loop_is_said_to_do_nothing(make, caplog):
    stopping = EarlyStopping("eval/mean_reward")
    with caplog.at_level(logging.WARNING):
        train(make("TinyCount-v0", callbacks=[stopping], fast=True, profiler="simple", n_timesteps=40))
    assert (
        "HillClimbing trains through its own learn(), where these do nothing: EarlyStopping, --fast, --profiler" in caplog.text
    )


def test_sb3_s_interface_is_enough(make, tmp_path):
    """A class of no known base, whose loop has no rollouts: each env step is a boundary, and its own `load` restores it."""
    (tmp_path / "search.yml").write_text("default: {policy: any, scale: 2.0, n_timesteps: 50}")
    options = {"config": str(tmp_path / "search.yml"), "save_freq": 20, "eval_freq": 25, "show_progress": True}
    manager = make("TinyCount-v0", "own_algorithms:RandomSearch", callbacks=[SignalAt(signal.SIGINT, 33)], **options)
    model, run = train(manager)
    assert isinstance(model, RandomSearch)
    assert (manager.stop_signal, checkpoints(run)) == (signal.SIGINT, [20, 33])
    resumed, _ = train(make("TinyCount-v0", "own_algorithms:RandomSearch", resume=str(run), **options))
    whole, _ = train(make("TinyCount-v0", "own_algorithms:RandomSearch", **options))
    assert resumed.num_timesteps == whole.num_timesteps == 50
    np.testing.assert_array_equal(resumed.policy.weights, whole.policy.weights)
    np.testing.assert_array_equal(load_run(run)[0].policy.weights, whole.policy.weights)
