"""Models and statistics from strangers: every algorithm's are readable, and those that would run something are not run."""

import pickle

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from hostile import hostile_pickle, rewrite_model, zip_with
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her import HerReplayBuffer

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.load import NOT_READ
from lit_sb3_ray.untrusted.models import read_custom_objects, read_statistics

SMALL = {"net_arch": [4]}
ON_POLICY = {"n_steps": 8, "policy_kwargs": SMALL}
OFF_POLICY = {"learning_starts": 4, "buffer_size": 50, "batch_size": 4, "policy_kwargs": SMALL}
CASES = {
    "a2c": ("CartPole-v1", ON_POLICY),
    "ars": ("CartPole-v1", {"n_delta": 1, "policy_kwargs": SMALL}),
    "crossq": ("Pendulum-v1", OFF_POLICY),
    "ddpg": ("Pendulum-v1", OFF_POLICY),
    "dqn": ("CartPole-v1", OFF_POLICY),
    "ppo": ("CartPole-v1", {**ON_POLICY, "batch_size": 8, "clip_range_vf": 0.2}),
    "ppo_lstm": ("CartPole-v1", {**ON_POLICY, "batch_size": 8, "policy_kwargs": {**SMALL, "lstm_hidden_size": 4}}),
    "ppo_mask": ("TinyMasked-v0", {**ON_POLICY, "batch_size": 8}),
    "qrdqn": ("CartPole-v1", OFF_POLICY),
    "sac": ("Pendulum-v1", {**OFF_POLICY, "use_sde": True}),
    "td3": ("Pendulum-v1", OFF_POLICY),
    "tqc": ("TinyGoal-v0", {**OFF_POLICY, "replay_buffer_class": HerReplayBuffer, "learning_starts": 30}),
    "trpo": ("CartPole-v1", {**ON_POLICY, "batch_size": 8}),
}
POLICIES = {"ppo_lstm": "MlpLstmPolicy", "tqc": "MultiInputPolicy"}


def test_every_algorithm_has_a_case():
    assert set(CASES) == set(ALGOS)


@pytest.mark.parametrize("algo", CASES)
def test_a_model_of_every_algorithm_is_read_without_unpickling(algo, tmp_path, monkeypatch):
    env_id, kwargs = CASES[algo]
    env = DummyVecEnv([lambda: gym.make(env_id)])
    policy = POLICIES.get(algo, "MlpPolicy")
    model = ALGOS[algo](policy, env, seed=1, device="cpu", **{**kwargs, "policy_kwargs": dict(kwargs["policy_kwargs"])})
    model.learn(40)
    model.save(tmp_path / "model.zip")
    objects = read_custom_objects(tmp_path / "model.zip", NOT_READ)

    def refuse(*_):
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(cloudpickle, "loads", refuse)
    loaded = ALGOS[algo].load(tmp_path / "model.zip", env=env, custom_objects=objects, device="cpu")
    for name, tensor in model.policy.state_dict().items():
        assert torch.equal(loaded.policy.state_dict()[name], tensor)
    observation = env.reset()
    assert np.array_equal(
        loaded.predict(observation, deterministic=True)[0], model.predict(observation, deterministic=True)[0]
    )


@pytest.fixture(scope="module")
def ppo(tmp_path_factory):
    path = tmp_path_factory.mktemp("ppo") / "model.zip"
    PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, policy_kwargs={"net_arch": [4]}, device="cpu").save(path)
    return path


@pytest.mark.parametrize("entry", ["policy_class", "observation_space", "something_new"])
def test_a_model_that_would_run_a_command_is_refused_and_not_run(ppo, tmp_path, entry):
    made = tmp_path / "made"
    path = rewrite_model(ppo, tmp_path / "bad.zip", **{entry: hostile_pickle(made)})
    with pytest.raises(ConfigError, match=rf"bad\.zip \({entry}\) was refused and not run: it holds posix\.system"):
        read_custom_objects(path, NOT_READ)
    assert not made.exists()


def test_the_same_model_does_run_it_when_it_is_trusted(ppo, tmp_path):
    made = tmp_path / "made"
    path = rewrite_model(ppo, tmp_path / "bad.zip", something_new=hostile_pickle(made))
    PPO.load(path, device="cpu")
    assert made.exists()


@pytest.mark.parametrize("entry", ["lr_schedule", "learning_rate", "clip_range", "clip_range_vf", "action_noise"])
def test_what_is_not_needed_to_play_is_left_unread(ppo, tmp_path, entry):
    made = tmp_path / "made"
    path = rewrite_model(ppo, tmp_path / "odd.zip", **{entry: hostile_pickle(made)})
    model = PPO.load(path, custom_objects=read_custom_objects(path, NOT_READ), device="cpu")
    assert model.predict(np.zeros(4, np.float32), deterministic=True)[0] in (0, 1)
    assert not made.exists()


def test_functions_are_refused_where_they_are_needed(ppo, tmp_path):
    path = rewrite_model(ppo, tmp_path / "odd.zip", policy_kwargs=cloudpickle.dumps({"activation_fn": lambda: None}))
    with pytest.raises(ConfigError, match=r"\(policy_kwargs\) was refused and not run: it holds cloudpickle"):
        read_custom_objects(path, NOT_READ)


class OwnPolicy(ActorCriticPolicy):
    """A policy that is not listed."""


def test_a_policy_of_ones_own_is_named(ppo, tmp_path):
    path = rewrite_model(ppo, tmp_path / "own.zip", policy_class=pickle.dumps(OwnPolicy))
    with pytest.raises(ConfigError, match=r"it holds [\w.]*OwnPolicy, which is not on the list"):
        read_custom_objects(path, NOT_READ)


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff"])
def test_data_that_is_no_mapping_is_told(tmp_path, content):
    path = zip_with(tmp_path / "x.zip", "data", content=content)
    with pytest.raises(ConfigError, match=r"x\.zip is no model of Stable-Baselines3"):
        read_custom_objects(path, {})


def test_a_zip_without_data_and_broken_base64_are_told(ppo, tmp_path):
    with pytest.raises(ConfigError, match="it has no data"):
        read_custom_objects(zip_with(tmp_path / "x.zip", "policy.pth"), {})
    content = b'{"policy_class": {":serialized:": "a"}}'
    with pytest.raises(ConfigError, match="policy_class in its data is no base64"):
        read_custom_objects(zip_with(tmp_path / "y.zip", "data", content=content), {})


def test_statistics_come_back_as_they_were(tmp_path):
    env = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]))
    env.seed(0)
    env.reset()
    for _ in range(20):
        env.step(np.zeros(1, int))
    env.save(str(tmp_path / "s.pkl"))
    loaded = read_statistics(tmp_path / "s.pkl")
    assert np.array_equal(loaded.obs_rms.mean, env.obs_rms.mean)
    assert np.array_equal(loaded.ret_rms.var, env.ret_rms.var)


def test_statistics_that_would_run_a_command_are_refused_and_not_run(tmp_path):
    made = tmp_path / "made"
    (tmp_path / "s.pkl").write_bytes(hostile_pickle(made))
    with pytest.raises(ConfigError, match=r"s\.pkl was refused and not run: it holds posix\.system"):
        read_statistics(tmp_path / "s.pkl")
    assert not made.exists()


def test_other_things_are_no_statistics(tmp_path):
    (tmp_path / "s.pkl").write_bytes(pickle.dumps([1]))
    with pytest.raises(ConfigError, match="no normalisation statistics of SB3 but a list"):
        read_statistics(tmp_path / "s.pkl")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_statistics(tmp_path / "none.pkl")


@pytest.mark.parametrize("name", ["predict", "learn", "_setup_model", "get_env"])
def test_data_in_the_place_of_a_method_is_refused(tmp_path, name):
    path = zip_with(tmp_path / "model.zip", "data", content=f'{{"{name}": 5}}'.encode())
    with pytest.raises(ConfigError, match=f"refused: its data would take the place of the algorithm's method {name}"):
        read_custom_objects(path, NOT_READ)
