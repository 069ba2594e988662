"""A model to start from is one of the same algorithm, and what it does not take of the hyperparameters is told."""

from __future__ import annotations

import numpy as np
import pytest
import stable_baselines3
from hostile import hostile_pickle, zip_with
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import NormalActionNoise

import tiny_envs  # noqa: F401  (registers TinyCount-v0, TinyMasked-v0)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.config.algorithms import BUILT_IN, resolve_algorithm
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.model_files import check_algorithm, read_data
from lit_sb3_ray.experiment.origin import Origin, write_origin

POLICIES = {"ars": "LinearPolicy", "ppo_lstm": "MlpLstmPolicy"}
ENVS = {"ppo_mask": "TinyMasked-v0", **dict.fromkeys(("crossq", "ddpg", "sac", "td3", "tqc"), "TinyCount-v0")}
# Nothing in the file tells these two apart.
ALIKE = {"ddpg": {"ddpg", "td3"}, "td3": {"ddpg", "td3"}}


class OwnPPO(stable_baselines3.PPO):
    """A user's."""


class RoomyBuffer(ReplayBuffer):
    """A user's."""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A new model of each algorithm, saved."""
    folder = tmp_path_factory.mktemp("models")
    for algo in BUILT_IN:
        model = resolve_algorithm(algo)(POLICIES.get(algo, "MlpPolicy"), ENVS.get(algo, "CartPole-v1"), device="cpu")
        model.save(folder / algo)
    return folder


@pytest.mark.parametrize("algo", BUILT_IN)
def test_a_model_is_taken_for_its_own_algorithm_alone(models, algo):
    taken = set()
    for asked in BUILT_IN:
        try:
            check_algorithm(str(models / f"{algo}.zip"), asked, "-i")
        except ConfigError as error:
            assert f"is a model of {' or '.join(sorted(ALIKE.get(algo, {algo})))}, not of {asked}" in str(error)
        else:
            taken.add(asked)
    assert taken == ALIKE.get(algo, {algo})


def test_a_class_of_the_user_s_takes_models_of_what_it_descends_from(models):
    check_algorithm(str(models / "ppo.zip"), f"{__name__}:OwnPPO", "-i")
    with pytest.raises(ConfigError, match=r"is a model of a2c, not of .*OwnPPO: give --algo a2c"):
        check_algorithm(str(models / "a2c.zip"), f"{__name__}:OwnPPO", "-i")


def test_another_s_model_is_one_line_before_any_env_is_built(models, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["train", "--algo", "a2c", "-i", str(models / "ppo.zip"), "-n", "64", "--device", "cpu"]
    assert cli.main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "is a model of ppo, not of a2c: give --algo ppo, or another model" in line
    assert list(tmp_path.iterdir()) == []


def warm(models, folder, algo, **hyperparams):
    env_id = ENVS.get(algo, "CartPole-v1")
    settings = {"eval_freq": -1, "verbose": 0, "device": "cpu", "hyperparams": {"n_envs": 1, **hyperparams}}
    manager = ExperimentManager(
        None, algo, env_id, str(folder), trained_agent=str(models / f"{algo}.zip"), n_timesteps=64, **settings
    )
    model = manager.setup_experiment()
    model.get_env().close()
    return model


def test_hyperparameters_that_the_model_does_not_take_are_told(models, tmp_path, caplog):
    model = warm(models, tmp_path, "ppo", policy_kwargs={"net_arch": [8]}, stats_window_size=7, n_steps=16, batch_size=8)
    assert (model.n_steps, model.policy_kwargs) == (16, {})
    told = [record.message for record in caplog.records if "have no effect" in record.message]
    assert told == [
        f"-i {models / 'ppo.zip'}: policy_kwargs (net_arch), stats_window_size of the hyperparameters have no effect, "
        "since the model has its own"
    ]


def test_where_all_are_taken_nothing_is_told(models, tmp_path, caplog):
    warm(models, tmp_path, "ppo", n_steps=16, batch_size=8)
    assert "have no effect" not in caplog.text


def test_the_action_noise_of_the_hyperparameters_is_taken(models, tmp_path):
    model = warm(models, tmp_path, "td3", noise_type="normal", noise_std=0.25)
    assert isinstance(model.action_noise, NormalActionNoise)
    assert np.allclose(model.action_noise._sigma, 0.25)


def test_a_replay_buffer_must_be_one_that_the_run_can_fill(models, tmp_path, caplog):
    first = stable_baselines3.SAC("MlpPolicy", "TinyCount-v0", buffer_size=50, device="cpu", learning_starts=5)
    first.learn(20)
    first.save(tmp_path / "sac.zip")
    first.save_replay_buffer(tmp_path / "replay_buffer.pkl")
    logs = tmp_path / "logs"
    with pytest.raises(ConfigError, match="it is of 1 environments, and the run has 2: give --n-envs 1"):
        warm(tmp_path, logs, "sac", n_envs=2)
    with pytest.raises(ConfigError, match="it is a ReplayBuffer, and the run has a RoomyBuffer"):
        warm(tmp_path, logs, "sac", replay_buffer_class=RoomyBuffer)
    assert not logs.exists()
    assert warm(tmp_path, logs, "sac", buffer_size=30).replay_buffer.pos == 20
    assert "has room for 50 env steps, which stands, not for 30" in caplog.text


def test_the_replay_buffer_beside_a_downloaded_model_is_left_unread(models, tmp_path, caplog):
    downloaded = tmp_path / "downloaded"
    (downloaded / "TinyCount-v0").mkdir(parents=True)
    (downloaded / "sac.zip").write_bytes((models / "sac.zip").read_bytes())
    (downloaded / "replay_buffer.pkl").write_bytes(hostile_pickle(tmp_path / "made"))
    write_origin(downloaded / "TinyCount-v0", Origin("me/sac", "0", trusted=False))
    warm(downloaded, tmp_path / "logs", "sac")
    assert "replay_buffer.pkl beside -i is left unread" in caplog.text
    assert not (tmp_path / "made").exists()


def test_a_bomb_in_the_place_of_a_model_is_not_unpacked(tmp_path):
    content = b'{"n_delta": 1' + b" " * (32 * 2**20) + b"}"
    assert read_data(zip_with(tmp_path / "x.zip", "data", content=content)) == {}


def test_another_kind_of_exploration_is_refused_by_name(models, tmp_path):
    with pytest.raises(ConfigError, match=r"sac\.zip' is a model with use_sde False: give -params use_sde:False"):
        warm(models, tmp_path, "sac", use_sde=True)
