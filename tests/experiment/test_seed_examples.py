"""The usage examples that users of `rl_zoo3.exp_manager` know run as written, with only the import line changed.

Numbers of steps are made smaller where an example would take long; the study's example has a test of its own.
"""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import ray
import yaml
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.save_util import load_from_zip_file

IMPORT = ("from rl_zoo3.exp_manager import ExperimentManager", "from lit_sb3_ray import ExperimentManager")

BASIC = """
import argparse
from rl_zoo3.exp_manager import ExperimentManager

# Create arguments (typically from command line)
args = argparse.Namespace(
    algo='ppo',
    env='CartPole-v1',
    n_timesteps=10000,
    eval_freq=1000,
    n_eval_episodes=5,
    save_freq=-1,
    verbose=1,
    seed=42
)

# Create experiment manager
exp_manager = ExperimentManager(
    args=args,
    algo='ppo',
    env_id='CartPole-v1',
    log_folder='./logs',
    n_timesteps=10000,
    eval_freq=1000,
    seed=42
)

# Setup and train
model = exp_manager.setup_experiment()
exp_manager.learn(model)
exp_manager.save_trained_model(model)
"""

ADVANCED = """
import argparse
from rl_zoo3.exp_manager import ExperimentManager

# Advanced configuration
args = argparse.Namespace(
    algo='sac',
    env='Pendulum-v1',
    n_timesteps=50000,
    eval_freq=5000,
    n_eval_episodes=10,
    save_freq=10000,
    verbose=1,
    seed=123,
    tensorboard_log='./tb_logs',
    vec_env_type='subproc',
    n_envs=4
)

# Custom hyperparameters
custom_hyperparams = {
    'learning_rate': 0.0003,
    'buffer_size': 50000,
    'batch_size': 64,
    'tau': 0.02,
    'gamma': 0.98
}

# Custom environment kwargs
env_kwargs = {
    'render_mode': None,
    'max_episode_steps': 200
}

# Create experiment manager with custom settings
exp_manager = ExperimentManager(
    args=args,
    algo='sac',
    env_id='Pendulum-v1',
    log_folder='./logs',
    tensorboard_log='./tb_logs',
    n_timesteps=50000,
    eval_freq=5000,
    n_eval_episodes=10,
    save_freq=10000,
    hyperparams=custom_hyperparams,
    env_kwargs=env_kwargs,
    vec_env_type='subproc',
    n_envs=4,
    seed=123,
    show_progress=True
)

# Setup and train
model = exp_manager.setup_experiment()
exp_manager.learn(model)
exp_manager.save_trained_model(model)
"""

CONTINUING = """
import argparse
from rl_zoo3.exp_manager import ExperimentManager

# Setup for loading pre-trained model
args = argparse.Namespace(
    algo='ppo',
    env='CartPole-v1',
    n_timesteps=20000,  # Additional training steps
    eval_freq=1000,
    verbose=1,
    seed=42
)

# Create experiment manager with trained agent
exp_manager = ExperimentManager(
    args=args,
    algo='ppo',
    env_id='CartPole-v1',
    log_folder='./logs',
    trained_agent='./logs/ppo/CartPole-v1_1/best_model.zip',
    n_timesteps=20000,
    eval_freq=1000,
    seed=42
)

# Load model and continue training
model = exp_manager.setup_experiment()  # This will load the trained agent
exp_manager.learn(model)  # Continue training for additional timesteps
exp_manager.save_trained_model(model)
"""


@pytest.fixture
def run_example(tmp_path, monkeypatch):
    """Runs an example in an empty folder and returns its variables; `smaller` maps its numbers to smaller ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")

    def run(code: str, smaller: dict[str, str]) -> dict:
        for old, new in {IMPORT[0]: IMPORT[1], **smaller}.items():
            assert old in code
            code = code.replace(old, new)
        script = tmp_path / "example.py"
        script.write_text(code)
        return runpy.run_path(str(script), run_name="__main__")

    run.folder = tmp_path
    is_shared = ray.is_initialized()
    yield run
    if not is_shared:
        # Its own Ray must not be in the way of the one that other tests share.
        ray.shutdown()


def assert_equal_weights(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not (ours[name] == theirs[name]).all()] == []


def evaluated_at(run) -> list[int]:
    with np.load(run / "evaluations.npz") as saved:
        return saved["timesteps"].tolist()


@pytest.mark.slow
def test_basic_training_and_continuing(run_example):
    basic = run_example(BASIC, {"n_timesteps=10000": "n_timesteps=3000"})
    run = run_example.folder / "logs" / "ppo" / "CartPole-v1_1"
    model = basic["model"]
    assert isinstance(model, PPO)
    # Rollouts are of 256 steps, and evaluations are due at the first env step from each thousand on.
    assert model.num_timesteps == 3072
    assert evaluated_at(run) == [1000, 2000, 3000]
    assert basic["exp_manager"].saved_hyperparams["learning_rate"] == "lin_0.001"
    settings = run / "CartPole-v1"
    assert yaml.safe_load((settings / "config.yml").read_text()) == basic["exp_manager"].saved_hyperparams
    assert vars(basic["args"]).items() <= yaml.safe_load((settings / "args.yml").read_text()).items()
    assert_equal_weights(PPO.load(run / "CartPole-v1.zip").get_parameters()["policy"], model.get_parameters()["policy"])
    assert len(load_results(str(run))) > 0

    smaller = {"n_timesteps=20000": "n_timesteps=1500"}
    only_loaded = run_example(CONTINUING.partition("exp_manager.learn")[0], smaller)
    _, saved, _ = load_from_zip_file(run / "best_model.zip", device="cpu")
    assert_equal_weights(only_loaded["model"].get_parameters()["policy"], saved["policy"])

    continued = run_example(CONTINUING, smaller)
    # A warm start: the new run's count begins at 0.
    assert continued["model"].num_timesteps == 1536
    assert evaluated_at(run.with_name("CartPole-v1_3")) == [1000]
    assert (run.with_name("CartPole-v1_3") / "CartPole-v1.zip").exists()


@pytest.mark.slow
def test_advanced_training(run_example, capfd):
    smaller = {"n_timesteps=50000": "n_timesteps=400", "eval_freq=5000": "eval_freq=200", "save_freq=10000": "save_freq=300"}
    smaller |= {"n_eval_episodes=10": "n_eval_episodes=2", "'max_episode_steps': 200": "'max_episode_steps': 40"}
    variables = run_example(ADVANCED, smaller)
    model, run = variables["model"], run_example.folder / "logs" / "sac" / "Pendulum-v1_1"
    assert isinstance(model, SAC)
    assert model.lr_schedule(1.0) == 0.0003
    assert (model.buffer_size, model.batch_size, model.tau, model.gamma) == (50000, 64, 0.02, 0.98)
    assert model.num_timesteps == 400
    assert model.n_envs == variables["exp_manager"].n_envs == 4
    # Two whole episodes of each of four envs, shorter than the environment's own.
    episodes = load_results(str(run))
    assert len(episodes) == 8
    assert set(episodes["l"]) == {40}
    assert evaluated_at(run) == [200, 400]
    assert (run / "rl_model_300_steps.zip").exists()
    assert list((run_example.folder / "tb_logs").rglob("events.out.tfevents.*"))
    assert "400 of 400 steps" in capfd.readouterr().err
