"""ParallelTrainCallback: the thread learns what the algorithm would, beside the collecting, and ends in every case."""

from __future__ import annotations

import copy
import signal
import threading
import time

import numpy as np
import pytest
import torch
import training_process as tp
from sb3_contrib import TQC, CrossQ
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.callbacks import ParallelTrainCallback
from lit_sb3_ray.experiment.callbacks.parallel_training import DrawnBatches, _copy_of, _gradient_steps

PATH = "rl_zoo3.callbacks.ParallelTrainCallback"
SMALL = {"policy": "MlpPolicy", "n_timesteps": 200, "policy_kwargs": {"net_arch": [8]}, "learning_starts": 20, "batch_size": 8}
EPISODES = {**SMALL, "buffer_size": 500, "train_freq": [1, "episode"]}
HER = {"policy": "MultiInputPolicy", "replay_buffer_class": "HerReplayBuffer"}
KINDS = {
    "sac": ("sac", "TinyCount-v0", {}),
    "tqc, normalised": ("tqc", "TinyCount-v0", {"normalize": True}),
    "td3 with noise": ("td3", "TinyCount-v0", {"noise_type": "normal", "noise_std": 0.1}),
    "crossq, a step at a time": ("crossq", "TinyCount-v0", {"train_freq": 1}),
    "sac with hindsight": ("sac", "TinyGoal-v0", HER),
}


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("parallel-training")]


def manager_of(folder, algo, env_id, entry, callback=PATH, **options):
    hyperparams = {**EPISODES, **entry, "callback": [{callback: {"gradient_steps": 5}}]}
    (folder / "own.py").write_text(f"hyperparams = {{{env_id!r}: {hyperparams!r}}}")
    options = {"eval_freq": 100, "n_eval_episodes": 1, "seed": 1, "verbose": 0, "device": "cpu", **options}
    return ExperimentManager(None, algo, env_id, str(folder / "logs"), config=str(folder / "own.py"), **options)


def weights(model):
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_names_it_trains_in_steps_of_its_own(kind, tmp_path):
    manager = manager_of(tmp_path, *KINDS[kind], save_freq=100)
    model = manager.setup_experiment()
    before = weights(model)
    manager.learn(model)
    manager.save_trained_model(model)
    assert model.num_timesteps >= 200
    assert model._n_updates > 0
    assert model._n_updates % 5 == 0
    after = weights(model)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert not {"train", "_excluded_save_params"} & vars(model).keys()
    assert threads() == []
    for which in ("final", "best"):
        loaded, env = load_run(manager.run.path, which, device="cpu")
        env.close()
        assert not {"train", "_excluded_save_params"} & vars(loaded).keys()
    final = weights(load_run(manager.run.path, device="cpu")[0])
    assert all(torch.equal(final[name], after[name]) for name in final)


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    manager = manager_of(tmp_path, "sac", "TinyCount-v0", {}, "tiny_callbacks.InTurns", save_freq=100)
    model = manager.setup_experiment()
    manager.learn(model)
    assert "train/n_updates" in manager.run.metrics.read_text()
    resumed = ExperimentManager(
        None, "sac", "TinyCount-v0", str(tmp_path / "logs"), resume=str(manager.run.path), n_timesteps=300
    )
    again = resumed.setup_experiment()
    resumed.learn(again)
    assert again.num_timesteps >= 300
    assert again._n_updates > model._n_updates
    assert again._n_updates % 5 == 0


@pytest.mark.parametrize("cls", [SAC, TQC, TD3, CrossQ])
def test_the_thread_computes_what_the_algorithm_would(cls):
    model = cls("MlpPolicy", "Pendulum-v1", learning_starts=60, buffer_size=300, batch_size=16, seed=3, device="cpu")
    model.learn(64)
    learner = _copy_of(model)
    assert learner.env is model.env
    assert learner.replay_buffer is model.replay_buffer
    assert learner.actor is learner.policy.actor is not model.actor
    state = np.random.get_state()
    learner.replay_buffer = DrawnBatches([model.replay_buffer.sample(16) for _ in range(4)])
    torch.manual_seed(7)
    _gradient_steps(learner, 4, 16)
    np.random.set_state(state)
    torch.manual_seed(7)
    model.train(gradient_steps=4, batch_size=16)
    ours, theirs = weights(learner), weights(model)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    for name in model._get_torch_save_params()[1]:
        assert torch.equal(getattr(learner, name), getattr(model, name))
    assert learner._n_updates == model._n_updates
    assert len(learner.replay_buffer) == 0


class Gated(SAC):
    """Trains only while `gate` is open; what it raises then, if anything, is `error`."""

    gate = threading.Event()
    error: Exception | None = None

    def train(self, gradient_steps, batch_size=64):
        assert threading.current_thread() is not threading.main_thread()
        assert self.gate.wait(30)
        if self.error is not None:
            raise self.error
        super().train(gradient_steps, batch_size)


class At(BaseCallback):
    """Calls something at an env step, and ends training where it answers False."""

    def __init__(self, step, call):
        super().__init__()
        self.step, self.call = step, call

    def _on_step(self):
        return self.call(self.model) is not False if self.num_timesteps == self.step else True


@pytest.fixture
def gated(monkeypatch):
    monkeypatch.setattr(Gated, "gate", threading.Event())
    monkeypatch.setattr(Gated, "error", None)
    options = {"train_freq": (1, "episode"), "learning_starts": 5, "buffer_size": 500, "batch_size": 8, "device": "cpu"}
    yield Gated("MlpPolicy", "TinyCount-v0", policy_kwargs={"net_arch": [8]}, seed=0, **options)
    Gated.gate.set()


def test_collecting_goes_on_while_the_thread_trains(gated):
    seen = []

    def look(model):
        # The gate has been shut since step 5: all this was collected beside the gradient steps.
        seen.append((model._n_updates, model.replay_buffer.size(), len(threads())))
        Gated.gate.set()

    gated.learn(100, [ParallelTrainCallback(gradient_steps=3), At(60, look)])
    assert seen == [(0, 59, 1)]
    assert gated._n_updates >= 3
    assert threads() == []


def test_the_model_keeps_its_weights_until_the_thread_is_done(gated):
    before, during = weights(gated), []
    gated.learn(100, [ParallelTrainCallback(3), At(60, lambda model: (during.append(weights(model)), Gated.gate.set())[1])])
    assert all(torch.equal(before[name], during[0][name]) for name in before)
    assert any(not torch.equal(before[name], value) for name, value in weights(gated).items())


def test_what_goes_wrong_in_the_thread_ends_the_training(gated):
    Gated.error = ValueError("no such gradient")
    Gated.gate.set()
    with pytest.raises(ValueError, match="no such gradient"):
        gated.learn(1000, ParallelTrainCallback(3))
    assert threads() == []


def test_a_training_that_is_ended_early_does_not_wait_for_the_gradient_steps(gated):
    before = weights(gated)

    def stop(model):
        Gated.gate.set()
        return False

    begun = time.monotonic()
    gated.learn(10**6, [ParallelTrainCallback(5000, verbose=1), At(20, stop)])
    assert time.monotonic() - begun < 60
    assert all(torch.equal(before[name], value) for name, value in weights(gated).items())
    assert threads() == []
    # Nothing of it is left on the model, which trains as ever.
    gated.__class__ = SAC
    gated.learn(50, reset_num_timesteps=False)
    assert gated._n_updates > 0


def test_saving_in_the_middle_saves_the_model_as_an_algorithm_of_its_own(gated, tmp_path):
    Gated.gate.set()
    callback = ParallelTrainCallback(3)
    callback.init_callback(gated)
    callback._hold()
    gated.save(tmp_path / "held.zip")
    attributes = copy.deepcopy({name: value for name, value in vars(gated).items() if name in ("train", "gamma")})
    assert "train" in attributes
    assert gated.train(gradient_steps=1, batch_size=8) is None
    assert not {"train", "_excluded_save_params"} & vars(SAC.load(tmp_path / "held.zip")).keys()
    callback._release()
    assert gated.train.__func__ is Gated.train


@pytest.mark.parametrize(
    ("algo", "env_id", "message"),
    [
        ("ppo", "CartPole-v1", "PPO learns from what it has just collected"),
        ("ars", "CartPole-v1", "ARS learns from"),
        ("dqn", "CartPole-v1", "DQN changes its networks while it collects"),
        ("qrdqn", "CartPole-v1", "QRDQN changes its networks"),
    ],
)
def test_algorithms_that_it_does_not_suit_are_refused_before_anything_starts(algo, env_id, message, tmp_path, capsys):
    logs = tmp_path / "logs"
    words = ["--algo", algo, "--env", env_id, "-f", str(logs), "-n", "100", "-params", f"callback:{PATH}"]
    assert cli.main(["train", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "callback" in error
    assert not logs.exists()


@pytest.mark.parametrize("options", [{"gradient_steps": 0}, {"sleep_time": -1.0}, {"sleep_time": float("inf")}])
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match=f"{next(iter(options))} of ParallelTrainCallback"):
        ParallelTrainCallback(**options)


@pytest.mark.slow
def test_a_signal_saves_and_the_run_goes_on(tmp_path):
    words = ("--algo", "sac", "--env", "Pendulum-v1", "-n", "1000000", "--seed", "5", "--eval-freq", "-1", "-params")
    entry = (
        f"callback:{{'{PATH}': {{'gradient_steps': 2000}}}}",
        "train_freq:[1,'episode']",
        "learning_starts:200",
        "batch_size:16",
    )
    training = tp.start(tmp_path, (*words, *entry, "policy_kwargs:dict(net_arch=[16])"))
    run = training.wait_until(lambda: next(iter(tmp_path.glob("logs/*/*_1/0.monitor.csv")), None)).parent
    training.wait_until(lambda: len(tp.episodes(run)) >= 4)
    begun = time.monotonic()
    training.send(signal.SIGTERM)
    assert training.wait() == 143
    assert time.monotonic() - begun < 5
    (at,) = tp.checkpoints(run)
    resumed = ExperimentManager(None, "sac", "Pendulum-v1", str(tmp_path / "logs"), resume=str(run), n_timesteps=at + 10)
    model = resumed.setup_experiment()
    resumed.learn(model)
    assert model.num_timesteps >= at + 10
