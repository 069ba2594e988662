"""What does not suit the spaces of an env is refused by its name before anything is written; what suits is let pass."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import CombinedExtractor

import tiny_envs  # noqa: F401  (registers TinyGoal-v0)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.cli.main import main
from lit_sb3_ray.config.hyperparams import resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.fitting import check_fit

VECTOR = spaces.Box(-1.0, 1.0, (4,), np.float32)
IMAGE = spaces.Box(0, 255, (3, 36, 36), np.uint8)
FLOATS = spaces.Box(0.0, 1.0, (3, 36, 36), np.float32)
DICT = spaces.Dict({"a": VECTOR})
GOALS = spaces.Dict({"observation": VECTOR, "achieved_goal": VECTOR, "desired_goal": VECTOR})
NUMBERS, CHOICES = spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(3)
SWITCHES = spaces.MultiBinary(2)
HER = {"policy": "MultiInputPolicy", "replay_buffer_class": "HerReplayBuffer"}


class OwnSAC(SAC):
    """A class that may take what its ancestor does not."""


class OwnDQN(DQN):
    """Another."""


class OwnPolicy(ActorCriticPolicy):
    """A user's, for single arrays."""


class OnePart(OwnPolicy):
    """Another, which takes what it reads out of a Dict."""

    def __init__(self, observation_space, *args, **kwargs):
        super().__init__(observation_space["observation"], *args, **kwargs)
        self.observation_space = observation_space

    def extract_features(self, obs, features_extractor=None):
        return self.features_extractor(obs["observation"].float())

    def predict_values(self, obs):
        return self.value_net(self.mlp_extractor.forward_critic(self.extract_features(obs)))


def fit(algo, observations, actions, **values):
    check_fit(resolve({"policy": "MlpPolicy", **values}, algo, "own.yml", n_timesteps=10), "X-v0", observations, actions)


@pytest.mark.parametrize(
    ("algo", "observations", "actions", "values", "told"),
    [
        ("dqn", VECTOR, NUMBERS, {}, "dqn is for discrete actions, and the actions are Box(2,) of float32"),
        ("qrdqn", VECTOR, SWITCHES, {}, "qrdqn is for discrete actions, and the actions are MultiBinary(2)"),
        *(
            (algo, VECTOR, CHOICES, {}, f"{algo} is for continuous actions, and the actions are Discrete(3)")
            for algo in ("sac", "td3", "ddpg", "tqc", "crossq")
        ),
        ("ppo_mask", VECTOR, NUMBERS, {}, "ppo_mask is for discrete actions, which can be masked"),
        ("dqn", VECTOR, CHOICES, {"noise_type": "normal", "noise_std": 0.1}, "DQN takes no action noise"),
        ("ddpg", VECTOR, CHOICES, {"noise_type": "normal", "noise_std": 0.1}, "noise_type needs continuous actions"),
        ("ppo", VECTOR, CHOICES, {"use_sde": True}, "use_sde needs continuous actions, and the actions are Discrete(3)"),
        (
            "ppo",
            VECTOR,
            CHOICES,
            {"policy": "MultiInputPolicy"},
            "policy 'MultiInputPolicy' does not take observations of Box(4,) of float32: take 'MlpPolicy'",
        ),
        (
            "ppo",
            DICT,
            CHOICES,
            {},
            "policy 'MlpPolicy' does not take observations of Dict(a): take 'MultiInputPolicy'",
        ),
        ("ppo_lstm", DICT, CHOICES, {"policy": "MlpLstmPolicy"}, "take 'MultiInputLstmPolicy'"),
        (
            "ppo",
            VECTOR,
            CHOICES,
            {"policy": "CnnPolicy"},
            "policy 'CnnPolicy' takes images, and the observations are Box(4,) of float32: take 'MlpPolicy'",
        ),
        ("ppo", FLOATS, CHOICES, {"policy": "CnnPolicy"}, "policy 'CnnPolicy' takes images"),
        (
            "sac",
            VECTOR,
            NUMBERS,
            {"replay_buffer_class": "HerReplayBuffer"},
            "replay_buffer_class 'HerReplayBuffer' needs observations that are a Dict with observation, achieved_goal, "
            "desired_goal, and they are Box(4,) of float32",
        ),
        ("sac", DICT, NUMBERS, HER, "and they are Dict(a)"),
    ],
)
def test_what_does_not_suit_is_named_with_its_value(algo, observations, actions, values, told):
    with pytest.raises(ConfigError) as error:
        fit(algo, observations, actions, **values)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert "<class" not in str(error.value)


@pytest.mark.parametrize(
    ("algo", "observations", "actions", "values"),
    [
        ("dqn", VECTOR, CHOICES, {}),
        ("sac", VECTOR, NUMBERS, {}),
        ("sac", GOALS, NUMBERS, HER),
        ("ppo", VECTOR, SWITCHES, {}),
        ("ppo", IMAGE, CHOICES, {"policy": "CnnPolicy"}),
        ("ppo", FLOATS, CHOICES, {"policy": "CnnPolicy", "policy_kwargs": {"normalize_images": False}}),
        (
            "ppo",
            FLOATS,
            CHOICES,
            {"policy": "CnnPolicy", "policy_kwargs": {"features_extractor_kwargs": {"normalized_image": True}}},
        ),
        ("ppo", IMAGE, CHOICES, {}),
        ("ppo", DICT, CHOICES, {"policy": "MultiInputPolicy"}),
        ("ppo_lstm", VECTOR, CHOICES, {"policy": "MlpLstmPolicy"}),
        ("ars", VECTOR, CHOICES, {"policy": "LinearPolicy"}),
        (f"{__name__}:OwnSAC", VECTOR, CHOICES, {}),
        (f"{__name__}:OwnDQN", VECTOR, NUMBERS, {"policy": "CnnPolicy"}),
        (
            "ppo",
            VECTOR,
            CHOICES,
            {
                "policy": "CnnPolicy",
                "policy_kwargs": "dict(features_extractor_class=stable_baselines3.common.torch_layers.FlattenExtractor)",
            },
        ),
    ],
)
def test_what_suits_or_is_not_known_is_let_pass(algo, observations, actions, values):
    fit(algo, observations, actions, **values)


def test_every_packaged_policy_of_every_algorithm_is_of_a_kind_that_is_known():
    from lit_sb3_ray.config.algorithms import ALGOS

    names = {name for algo in ALGOS for name in getattr(ALGOS[algo], "policy_aliases", {})}
    assert names <= {
        *("MlpPolicy", "CnnPolicy", "MultiInputPolicy", "LinearPolicy"),
        *("MlpLstmPolicy", "CnnLstmPolicy", "MultiInputLstmPolicy"),
    }


REFUSED = [
    (["--algo", "dqn", "--env", "Pendulum-v1"], "dqn on Pendulum-v1: dqn is for discrete actions"),
    (["--algo", "sac", "--env", "CartPole-v1"], "sac on CartPole-v1: sac is for continuous actions"),
    (["--algo", "ppo", "-params", "policy:'MultiInputPolicy'"], "ppo on CartPole-v1: policy 'MultiInputPolicy' does not"),
    (["--algo", "ppo", "-params", "policy:'CnnPolicy'"], "ppo on CartPole-v1: policy 'CnnPolicy' takes images"),
    (["--algo", "ppo", "-params", "batch_size:1"], "(batch_size, --hyperparams)"),
    (["--algo", "ppo", "-params", "policy_kwargs:dict(activation_fn=nn.Linear)"], "(activation_fn, policy_kwargs, --hyper"),
    (["--algo", "sac", "--env", "Pendulum-v1", "-params", "ent_coef:'abc'"], "not 'abc' (ent_coef, --hyperparams)"),
    (["--algo", "sac", "--env", "Pendulum-v1", "-params", "target_entropy:'abc'"], "not 'abc' (target_entropy, --hyper"),
    (
        ["--algo", "sac", "--env", "Pendulum-v1", "-params", "replay_buffer_class:'HerReplayBuffer'"],
        "sac on Pendulum-v1: replay_buffer_class 'HerReplayBuffer' needs observations",
    ),
]


@pytest.mark.parametrize("command", [["train"], ["train", "--eval-freq", "0"], ["tune"], ["sweep"]])
@pytest.mark.parametrize(("words", "told"), REFUSED)
def test_every_command_refuses_it_in_one_line_and_writes_nothing(command, words, told, tmp_path, monkeypatch, capsys):
    """No Ray is started to find out."""
    monkeypatch.chdir(tmp_path)
    if command == ["sweep"]:
        words = [word.replace("--algo", "--algos").replace("--env", "--envs") for word in words]
    assert main([*command, *words, "--device", "cpu"]) == 2
    captured = capsys.readouterr()
    errors = captured.err.splitlines()
    assert errors[-1].startswith("lit-sb3-ray: error: ")
    assert told in errors[-1]
    assert [line for line in errors if "error" in line] == errors[-1:]
    assert list(tmp_path.iterdir()) == []


def test_a_class_in_what_sb3_says_is_told_by_its_name():
    from lit_sb3_ray.lit.refusals import reason

    text = f"only supports {(spaces.Box, spaces.Discrete)} but {gym.Env} and <class 'int'> were provided"
    assert reason(ValueError(text)) == "only supports (Box, Discrete) but Env and int were provided"


def train(folder, policy, **policy_kwargs):
    figures = {"policy": policy, "policy_kwargs": policy_kwargs, "n_steps": 8, "batch_size": 8, "n_envs": 1}
    settings = {"eval_freq": -1, "verbose": 0, "n_timesteps": 8, "device": "cpu", "hyperparams": figures}
    manager = ExperimentManager(None, "ppo", "TinyGoal-v0", str(folder / "logs"), **settings)
    manager.learn(manager.setup_experiment())


def test_a_policy_of_the_user_s_that_cannot_read_a_dict_is_named(tmp_path):
    with pytest.raises(
        ConfigError, match=r"^policy OwnPolicy on TinyGoal-v0: its FlattenExtractor does not take observations of"
    ):
        train(tmp_path, OwnPolicy)
    assert list(tmp_path.iterdir()) == []
    train(tmp_path, OwnPolicy, features_extractor_class=CombinedExtractor)


def test_a_policy_of_the_user_s_may_read_a_dict_in_its_own_way(tmp_path):
    train(tmp_path, OnePart)
