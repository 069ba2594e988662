"""Runs of every kind are opened and played: this package's, rl_zoo3's, and this package's by rl_zoo3."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.playback import play

CONTINUOUS, DISCRETE = "TinyCount-v0", "CartPole-v1"
SMALL = {"policy_kwargs": {"net_arch": [8]}}
ON_POLICY = {**SMALL, "n_steps": 16, "n_envs": 2}
OFF_POLICY = {**SMALL, "learning_starts": 20, "batch_size": 8, "buffer_size": 500}
HER = {**OFF_POLICY, "policy": "MultiInputPolicy", "replay_buffer_class": "HerReplayBuffer", "replay_buffer_kwargs": {}}
KINDS = {
    "ppo": ("ppo", DISCRETE, {**ON_POLICY, "learning_rate": "lin_0.001", "clip_range": "lin_0.2"}),
    "dqn": ("dqn", DISCRETE, OFF_POLICY),
    "qrdqn": ("qrdqn", DISCRETE, OFF_POLICY),
    "sac": ("sac", CONTINUOUS, OFF_POLICY),
    "td3 with noise": ("td3", CONTINUOUS, {**OFF_POLICY, "noise_type": "normal", "noise_std": 0.1}),
    "tqc with a memory-saving buffer": (
        "tqc",
        CONTINUOUS,
        {**OFF_POLICY, "optimize_memory_usage": True, "replay_buffer_kwargs": {"handle_timeout_termination": False}},
    ),
    "ppo_lstm": ("ppo_lstm", DISCRETE, {"n_steps": 16, "n_envs": 2, "policy_kwargs": "dict(lstm_hidden_size=8)"}),
    "ppo_mask": ("ppo_mask", DISCRETE, ON_POLICY),
    "ars": ("ars", DISCRETE, {"n_delta": 1, "n_top": 1, "policy": "LinearPolicy"}),
    "a2c with normalize": ("a2c", CONTINUOUS, {**SMALL, "normalize": True, "n_envs": 2}),
    "ppo with frame_stack": ("ppo", DISCRETE, {**ON_POLICY, "frame_stack": 3}),
    "ppo with normalize, frame_stack and wrappers": (
        "ppo",
        CONTINUOUS,
        {
            **ON_POLICY,
            "normalize": "dict(norm_obs=True, norm_reward=False)",
            "frame_stack": 2,
            "env_wrapper": [{"rl_zoo3.wrappers.HistoryWrapper": {"horizon": 2}}],
            "use_sde": True,
        },
    ),
    "sac with a HER buffer": ("sac", "TinyGoal-v0", HER),
    "an own subclass": ("own_algorithms:OwnPPO", DISCRETE, ON_POLICY),
    "an own loop": ("own_algorithms:HillClimbing", DISCRETE, {"policy": "LinearPolicy", "normalize": True}),
}


def train(tmp_path, algo, env_id, hyperparams):
    """Trains for a few steps with nothing but the given hyperparameters."""
    entry = {"policy": "MlpPolicy", "n_timesteps": 64, **hyperparams}
    (tmp_path / "own.py").write_text(f"hyperparams = {{'default': {entry!r}}}")
    options = {"eval_freq": 32, "save_freq": 32, "n_eval_episodes": 1, "seed": 1, "verbose": 0, "device": "cpu"}
    manager = ExperimentManager(None, algo, env_id, str(tmp_path / "logs"), config=str(tmp_path / "own.py"), **options)
    model = manager.setup_experiment()
    manager.learn(model)
    manager.save_trained_model(model)
    return model, manager.run.path


@pytest.mark.parametrize("kind", KINDS)
def test_an_own_run_is_opened_as_it_was_saved_and_played(kind, tmp_path):
    model, run = train(tmp_path, *KINDS[kind])
    # An update of ARS ends with its episodes, not after so many steps.
    saved = sorted(int(re.search(r"\d+", path.name)[0]) for path in run.glob("rl_model_*_steps.zip"))
    assert saved
    for which in ("final", "best", saved[0]):
        loaded, env = load_run(run, which, n_envs=3, seed=5, device="cpu")
        assert type(loaded) is type(model)
        assert len(list(play(loaded, env, 30))) == 30
        env.close()
    final, env = load_run(run, n_envs=4, seed=5, device="cpu")
    observations = env.reset()
    expected, _ = model.predict(observations, deterministic=True)
    np.testing.assert_array_equal(final.predict(observations, deterministic=True)[0], expected)
    normalize, trained = final.get_vec_normalize_env(), model.get_vec_normalize_env()
    assert (normalize is None) == (trained is None)
    if normalize is not None:
        np.testing.assert_array_equal(normalize.obs_rms.mean, trained.obs_rms.mean)
        assert not normalize.training and not normalize.norm_reward
    env.close()


@pytest.mark.parametrize(
    ("kind", "missing", "message"),
    [
        ("ppo", "CartPole-v1.zip", "no CartPole-v1.zip in .*models there are best_model.zip"),
        ("a2c with normalize", "TinyCount-v0/vecnormalize.pkl", "statistics TinyCount-v0/vecnormalize.pkl are missing"),
        ("dqn", "CartPole-v1/config.yml", "config.yml"),
    ],
)
def test_what_is_missing_from_a_run_is_named(kind, missing, message, tmp_path):
    _, run = train(tmp_path, *KINDS[kind])
    (run / missing).unlink()
    with pytest.raises(ConfigError, match=message):
        load_run(run)


def test_a_model_of_another_algorithm_is_refused(tmp_path):
    _, run = train(tmp_path, *KINDS["dqn"])
    with pytest.raises(ConfigError, match=r"hyperparameter|cannot be loaded as PPO"):
        load_run(run, algo="ppo")


def peer(*words):
    """Runs rl_zoo3 in a process of its own: importing it changes gymnasium."""
    environ = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


PEER = [
    "--device",
    "cpu",
    "--num-threads",
    "1",
    "--seed",
    "1",
    "--eval-freq",
    "100",
    "--eval-episodes",
    "1",
    "--save-freq",
    "100",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "env_id", "params"),
    [
        ("ppo_lstm", "CartPoleNoVel-v1", ["n_steps:32", "n_envs:2", "normalize:True", "frame_stack:2"]),
        ("sac", "Pendulum-v1", ["learning_starts:50", "buffer_size:500"]),
    ],
)
def test_a_run_of_rl_zoo3_is_played(algo, env_id, params, tmp_path, capsys):
    logs = tmp_path / "logs"
    words = ["--algo", algo, "--env", env_id, "-f", str(logs)]
    peer("rl_zoo3.train", *words, *PEER, "-n", "200", "-params", *params)
    for flags in ([], ["--load-best"], ["--load-checkpoint", str(200 // (2 if "n_envs:2" in params else 1))]):
        code = cli.main(["enjoy", *words, "--no-render", "-n", "250", "--n-envs", "2", "--device", "cpu", *flags])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        assert "Mean reward" in captured.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo with normalize, frame_stack and wrappers", "sac"])
def test_rl_zoo3_plays_an_own_run_the_same(kind, tmp_path, capsys):
    (algo, _, hyperparams), env_id = KINDS[kind], "Pendulum-v1"
    logs = tmp_path / "logs"
    entry = {"policy": "MlpPolicy", **hyperparams}
    (tmp_path / "own.py").write_text(f"hyperparams = {{{env_id!r}: {entry!r}}}")
    words = ["--algo", algo, "--env", env_id, "-f", str(logs)]
    training = ["-n", "64", "--eval-freq", "-1", "--seed", "1", "--verbose", "0", "--conf-file", str(tmp_path / "own.py")]
    assert cli.main(["train", *words, *training]) == 0
    words += ["--no-render", "-n", "410", "--device", "cpu"]
    assert cli.main(["enjoy", *words]) == 0
    ours, theirs = capsys.readouterr().out, peer("rl_zoo3.enjoy", *words)
    assert re.search(r"Mean reward: (-?[\d.]+)", ours)[1] == re.search(r"Mean reward: (-?[\d.]+)", theirs)[1]


def test_gym_packages_that_are_no_list_are_told(tmp_path):
    _, run = train(tmp_path, "ppo", DISCRETE, ON_POLICY)
    settings = run / DISCRETE / "args.yml"
    settings.write_text(settings.read_text().replace("gym_packages: []", "gym_packages: os"))
    with pytest.raises(ConfigError, match=r"args.yml: gym_packages must be a list of modules, not 'os'"):
        load_run(run)


def test_a_run_from_others_imports_no_module_that_was_not_named(tmp_path):
    _, run = train(tmp_path, "ppo", DISCRETE, ON_POLICY)
    settings = run / DISCRETE / "args.yml"
    settings.write_text(settings.read_text().replace("gym_packages: []", "gym_packages: [antigravity]"))
    with pytest.raises(ConfigError, match=r"would import antigravity: --gym-packages antigravity would allow it"):
        load_run(run, trusted=False)
    assert "antigravity" not in sys.modules
    settings.write_text(settings.read_text().replace("antigravity", "tiny_envs"))
    _, env = load_run(run, trusted=False, gym_packages=["tiny_envs"], device="cpu")
    env.close()
