"""SBX's algorithms, written in JAX, train through their own `learn()`; `make test-jax` runs this where SBX is installed.

It is no part of `make test`, whose stand-ins (own_algorithms.py) go the same way without JAX.
"""

from __future__ import annotations

import signal

import jax
import numpy as np
import pytest
import sbx
import training_process
from stable_baselines3.common.save_util import load_from_zip_file
from training_process import SignalAt, checkpoints, differences, episodes

from lit_sb3_ray.cli import main as cli

CONF = """
CartPole-v1: {policy: MlpPolicy, n_timesteps: 512, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 2, normalize: true}
Pendulum-v1: {policy: MlpPolicy, n_timesteps: 300, learning_starts: 50, batch_size: 32, buffer_size: 1000}
"""
TOTAL = {"CartPole-v1": 512, "Pendulum-v1": 300}
CASES = [("sbx:PPO", "CartPole-v1", 128, 200), ("sbx:SAC", "Pendulum-v1", 100, 250)]


@pytest.fixture
def words(tmp_path):
    (tmp_path / "sbx.yml").write_text(CONF)

    def flags(algo, env_id, save_freq):
        saving = ["--save-freq", str(save_freq), "--eval-freq", "100", "--eval-episodes", "1", "--seed", "2"]
        return ["--algo", algo, "--env", env_id, "--conf-file", str(tmp_path / "sbx.yml"), *saving]

    return flags


def learned(run):
    """What a run has come to: all arrays of policy, optimizers and entropy coefficient, JAX's key, episodes, evaluations."""
    data, _, _ = load_from_zip_file(run / f"{run.name.removesuffix('_1')}.zip", device="cpu")
    states = {name: value for name, value in vars(data["policy"]).items() if name.endswith("_state")}
    states |= {name: data[name] for name in ("ent_coef_state", "key") if name in data}
    with np.load(run / "evaluations.npz") as file:
        evaluations = {name: file[name] for name in file.files}
    arrays = {name: [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(state)] for name, state in states.items()}
    return {"arrays": arrays, "steps": data["num_timesteps"], "episodes": episodes(run), "evaluations": evaluations}


@pytest.mark.parametrize(("algo", "env_id", "save_freq", "kill_at"), CASES)
def test_kill_and_resume_equals_stop_and_resume(algo, env_id, save_freq, kill_at, words, tmp_path, capsys):
    flags = words(algo, env_id, save_freq)
    killed = training_process.start(tmp_path / "killed", flags, [SignalAt(signal.SIGKILL, kill_at)])
    assert killed.wait() == -signal.SIGKILL, killed.log.read_text()
    run = training_process.only_run(tmp_path / "killed")
    last = checkpoints(run)[-1]
    assert last < kill_at
    training_process.resume(run)
    stopped = training_process.train(tmp_path / "stopped", [*flags, "-n", str(last)])
    training_process.resume(stopped, "-n", str(TOTAL[env_id]))
    assert differences(learned(run), learned(stopped)) == []
    words = ["--algo", algo, "--env", env_id, "-f", str(run.parents[1]), "--load-best"]
    assert cli.main(["enjoy", *words, "--no-render", "-n", "200"]) == 0
    assert "Loading" in capsys.readouterr().out


@pytest.mark.parametrize(("algo", "env_id", "save_freq", "stop_at"), CASES)
def test_it_learns_what_its_own_learn_learns(algo, env_id, save_freq, stop_at, words, tmp_path):
    from lit_sb3_ray import ExperimentManager

    run = training_process.train(tmp_path / "run", words(algo, env_id, save_freq))
    options = {"config": str(tmp_path / "sbx.yml"), "seed": 2, "eval_freq": -1, "verbose": 0}
    own = ExperimentManager(None, algo, env_id, str(tmp_path / "own"), **options).setup_experiment()
    assert isinstance(own, sbx.PPO | sbx.SAC)
    own.learn(TOTAL[env_id])
    trained = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(own.policy.actor_state)]
    assert differences(learned(run)["arrays"]["actor_state"], trained) == []


@pytest.mark.parametrize(("algo", "env_id", "save_freq", "stop_at"), CASES)
def test_a_signal_stops_it_and_it_goes_on(algo, env_id, save_freq, stop_at, words, tmp_path):
    stopping = training_process.start(tmp_path / "run", words(algo, env_id, -1), [SignalAt(signal.SIGTERM, stop_at)])
    assert stopping.wait() == 128 + signal.SIGTERM, stopping.log.read_text()
    run = training_process.only_run(tmp_path / "run")
    # The rollout that the signal came in ends first: after 32 steps of two envs, or one of one.
    assert checkpoints(run) == [-(-stop_at // 64) * 64 if env_id == "CartPole-v1" else stop_at]
    training_process.resume(run)
    assert learned(run)["steps"] == TOTAL[env_id]
