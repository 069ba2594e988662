"""Every space gives hyperparameters that its algorithm takes, and the ranges are those of rl_zoo3 where it has them."""

import json
import subprocess
import sys

import optuna
import pytest

from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.conversion import convert
from lit_sb3_ray.tuning.space.spaces import ON_POLICY, SPACES, sample, space_name

OFF_POLICY = sorted(set(SPACES) - ON_POLICY - {"ars"})
OF_THE_PEER = sorted(set(SPACES) - {"crossq", "ppo_mask"})

# The samplers of rl_zoo3 reduced to the ranges they draw from; importing it patches gymnasium, so it has a process of its own.
PEER_RANGES = """
import json, sys
import optuna
from optuna.distributions import distribution_to_json
from rl_zoo3.hyperparams_opt import HYPERPARAMS_SAMPLER

optuna.logging.set_verbosity(optuna.logging.WARNING)
ranges = {}
for algo in sys.argv[1:]:
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask(
        {"train_freq": optuna.distributions.IntDistribution(1, 10), "n_quantiles": optuna.distributions.IntDistribution(5, 50)}
        if algo == "tqc" else {"train_freq": optuna.distributions.IntDistribution(1, 10)} if "dqn" in algo else None)
    HYPERPARAMS_SAMPLER[algo](trial, 1, 1, {"using_her_replay_buffer": False, "her_kwargs": {}})
    ranges[algo] = {name: distribution_to_json(value) for name, value in trial.distributions.items()}
print(json.dumps(ranges))
"""


def draw(algo, seed, her=False):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask()
    sample(algo, trial, her=her)
    return trial


def test_all_algorithms_have_a_space():
    assert set(SPACES) == set(ALGOS)


@pytest.mark.parametrize("algo", sorted(SPACES))
def test_every_draw_resolves_over_the_packaged_default(algo):
    entry = read_entries(None, algo).entries["default"]
    for seed in range(20):
        hyperparams = convert(algo, draw(algo, seed).params, entry)
        resolved = resolve(merge(entry, hyperparams), algo, "test")
        assert resolved.saved.items() >= {"policy": entry["policy"], "n_timesteps": entry["n_timesteps"]}.items()
        if "batch_size" in hyperparams and algo in ON_POLICY:
            assert hyperparams["batch_size"] <= hyperparams["n_steps"]


@pytest.mark.parametrize("algo", [*OFF_POLICY, "a2c"])
def test_every_draw_keeps_the_rest_of_the_file_s_dicts(algo):
    policy_kwargs = "dict(net_arch=[8], optimizer_kwargs=dict(weight_decay=0.5))"
    entry = {"policy": "MlpPolicy", "n_timesteps": 10, "policy_kwargs": policy_kwargs}
    for seed in range(5):
        resolved = resolve(merge(entry, convert(algo, draw(algo, seed).params, entry)), algo, "test")
        assert resolved.model_kwargs["policy_kwargs"]["optimizer_kwargs"] == {"weight_decay": 0.5}
        assert resolved.model_kwargs["policy_kwargs"]["net_arch"] != [8]


@pytest.mark.parametrize("algo", sorted(set(OFF_POLICY) - {"crossq"}))  # CrossQ has no policy for goals.
def test_hindsight_replay_is_searched_within_the_buffer_s_arguments(algo):
    entry = {
        "policy": "MultiInputPolicy",
        "n_timesteps": 10,
        "replay_buffer_class": "HerReplayBuffer",
        "replay_buffer_kwargs": "dict(copy_info_dict=True, n_sampled_goal=9)",
    }
    for seed in range(5):
        hyperparams = convert(algo, draw(algo, seed, her=True).params, entry)
        resolved = resolve(merge(entry, hyperparams), algo, "test").model_kwargs["replay_buffer_kwargs"]
        assert resolved["copy_info_dict"] is True
        assert resolved["n_sampled_goal"] in range(1, 6)
        assert resolved["goal_selection_strategy"] in ("final", "episode", "future")


def test_crossq_has_no_target_network_to_average():
    assert "tau" in draw("sac", 0).params
    assert draw("crossq", 0).params.keys() == draw("sac", 0).params.keys() - {"tau"}


def test_bounds_follow_what_was_drawn_before():
    for seed in range(40):
        params = draw("tqc", seed).params
        assert params["top_quantiles_to_drop_per_net"] < params["n_quantiles"]
        params = draw("dqn", seed).params
        assert params["subsample_steps"] <= params["train_freq"]


def test_a_class_of_one_s_own_has_the_space_of_what_it_descends_from():
    assert space_name("sb3_contrib:MaskablePPO") == "ppo_mask"
    assert space_name("stable_baselines3:DDPG") == "ddpg"


def test_what_descends_from_nothing_known_has_none():
    with pytest.raises(ConfigError, match=r"no search space for 'stable_baselines3.common.base_class:BaseAlgorithm'"):
        space_name("stable_baselines3.common.base_class:BaseAlgorithm")


def test_ranges_are_rl_zoo3_s():
    told = subprocess.run([sys.executable, "-c", PEER_RANGES, *OF_THE_PEER], capture_output=True, text=True, check=True).stdout
    theirs = {
        algo: {name: json.loads(value) for name, value in ranges.items()}
        for algo, ranges in json.loads(told.splitlines()[-1]).items()
    }
    dynamic = {"subsample_steps", "top_quantiles_to_drop_per_net"}
    for algo, ranges in theirs.items():
        trial = draw(algo, 0)
        ours = {
            name: json.loads(optuna.distributions.distribution_to_json(value)) for name, value in trial.distributions.items()
        }
        assert ours.keys() == ranges.keys(), algo
        for name in ours.keys() - dynamic:
            assert ours[name] == ranges[name], (algo, name)
