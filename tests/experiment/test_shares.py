"""What each of several learners has, and what several cannot do."""

from __future__ import annotations

import pytest
from learner_runs import SMALL, manager

from lit_sb3_ray.cli.main import main
from lit_sb3_ray.config.hyperparams import resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.callbacks import ParallelTrainCallback
from lit_sb3_ray.experiment.shares import LEARNING_TOGETHER, share

BESIDE = "lit_sb3_ray.experiment.callbacks.ParallelTrainCallback"


@pytest.mark.parametrize(
    ("algo", "hyperparams", "settings", "told"),
    [
        ("ars", {"n_delta": 2}, {}, "ARS cannot be trained by several learners; these can: A2C"),
        ("trpo", {}, {}, "TRPO cannot be trained by several learners"),
        ("crossq", {}, {"env_id": "Pendulum-v1"}, "CrossQ cannot be trained by several learners"),
        ("ppo", {"n_envs": 3}, {}, "3 envs cannot be divided among 2 learners; give --n-envs 4"),
        ("ppo", SMALL, {"devices": 3}, "4 envs cannot be divided among 3 learners; give --n-envs 6"),
        ("ppo", {**SMALL, "batch_size": 33}, {}, "batch_size 33 cannot be divided among 2 learners"),
        ("td3", {"train_freq": [1, "episode"], "n_envs": 2}, {}, "train_freq is to be in steps"),
        ("ppo", SMALL, {"devices": 0}, "devices must be a whole number, 1 or more, not 0"),
        ("ppo", SMALL, {"optimize_hyperparameters": True}, "--devices 2 with a study"),
        ("ppo", {**SMALL, "batch_size": 2}, {}, "batch_size 2 leaves each of 2 learners one sample"),
        (
            "sac",
            {"n_envs": 2, "callback": f"{BESIDE}"},
            {},
            "--devices 2 with ParallelTrainCallback: learners exchange gradients",
        ),
        ("sac", {"n_envs": 2}, {"callbacks": [ParallelTrainCallback()]}, "--devices 2 with ParallelTrainCallback"),
    ],
)
def test_what_several_learners_cannot_do_is_refused_before_anything_is_written(algo, hyperparams, settings, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        manager(tmp_path / "logs", algo, hyperparams={"policy": "MlpPolicy", **hyperparams}, **settings).setup_experiment()
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_too_and_a_dry_run_tells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dry-run", "--devices", "2", "--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert "learners: 2" in told
    assert "training: 4" in told
    assert main(["train", "--devices", "3", "--seed", "1"]) == 2
    assert "cannot be divided among 3 learners" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def entry(algo, **values):
    return resolve({"policy": "MlpPolicy", "n_timesteps": 100, **values}, algo, "test")


def test_shares_come_to_what_one_has():
    ppo = share(entry("ppo", batch_size=64, n_steps=128), 8, 4)
    assert (ppo.n_envs, ppo.model_kwargs["batch_size"], ppo.model_kwargs["n_steps"]) == (2, 16, 128)
    dqn = share(entry("dqn", buffer_size=1000, learning_starts=100), 2, 2)
    kwargs = dqn.model_kwargs
    assert (kwargs["batch_size"], kwargs["buffer_size"], kwargs["learning_starts"]) == (16, 500, 100)
    assert kwargs["target_update_interval"] == 5000
    # SAC counts that in gradient steps, of which all learners make the same.
    sac = share(entry("sac", target_update_interval=2), 2, 2)
    assert sac.model_kwargs["target_update_interval"] == 2
    assert share(entry("a2c"), 4, 2).model_kwargs == entry("a2c").model_kwargs


def test_one_learner_has_it_all():
    one = share(entry("ppo", batch_size=63), 3, 1)
    assert (one.n_envs, one.model_kwargs) == (3, {"batch_size": 63})


def test_every_algorithm_named_can_be_resolved():
    names = {"A2C": "a2c", "MaskablePPO": "ppo_mask", "PPO": "ppo", "RecurrentPPO": "ppo_lstm", "DDPG": "ddpg", "DQN": "dqn"}
    names |= {"QRDQN": "qrdqn", "SAC": "sac", "TD3": "td3", "TQC": "tqc"}
    assert set(names) == set(LEARNING_TOGETHER)
    for name, algo in names.items():
        assert entry(algo).algo_class.__name__ == name
        assert share(entry(algo), 2, 2).n_envs == 1
