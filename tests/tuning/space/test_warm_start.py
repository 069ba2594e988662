"""Warm starts: the row of the file's own hyperparameters lies within the space, as near to them as it can be."""

import math
import warnings

import optuna
import pytest
from optuna.distributions import FloatDistribution

from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, resolve
from lit_sb3_ray.tuning.space.probing import nearest
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.space.warm_start import nearest_network, packaged_params, start_of
from lit_sb3_ray.tuning.storage import open_study


@pytest.mark.parametrize("algo", sorted(ALGOS))
def test_every_packaged_entry_has_a_row_that_optuna_takes(algo):
    study = open_study(None, None)
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Optuna warns of a value that is out of its distribution.
        for key, entry in read_entries(None, algo).entries.items():
            space = find_space(algo, her=entry.get("replay_buffer_class") == "HerReplayBuffer")
            params = packaged_params(space, entry)
            study.enqueue_trial(params)
            trial = study.ask()
            space.sample(trial)
            assert trial.params == params, key
            study.tell(trial, 1.0)
            merged = merge(entry, space.hyperparams(params, entry))
            # A wrapper's package may be missing.
            resolve({key: value for key, value in merged.items() if key not in ("env_wrapper", "callback")}, algo, key)


def test_what_the_space_has_is_met_exactly():
    entry = read_entries(None, "ppo").entries["atari"]
    space = find_space("ppo")
    params = packaged_params(space, entry)
    again = space.hyperparams(params, entry)
    assert {key: again[key] for key in ("n_steps", "batch_size", "ent_coef")} == {
        "n_steps": entry["n_steps"],
        "batch_size": entry["batch_size"],
        "ent_coef": entry["ent_coef"],
    }
    # Both are schedules there: the row has where they start.
    assert (params["learning_rate"], params["clip_range"]) == (2.5e-4, 0.1)
    assert (params["n_epochs"], params["net_arch"], params["activation_fn"]) == (5, "small", "tanh")


def test_what_is_outside_of_the_space_comes_to_its_edge():
    params = packaged_params(
        find_space("ppo"), {"gamma": 1.0, "gae_lambda": 0.5, "learning_rate": 1, "n_steps": 3, "ent_coef": 0}
    )
    assert params["one_minus_gamma"] == 1e-4
    assert params["one_minus_gae_lambda"] == 0.1
    assert params["learning_rate"] == 2e-3
    assert (params["n_steps_pow"], params["ent_coef"]) == (5, 1e-8)
    # The batch is what SB3 would take of a rollout of 3 * 2 env steps.
    assert packaged_params(find_space("ppo"), {"n_steps": 3}, 2)["batch_size_pow"] == round(math.log2(6))


def test_what_the_file_leaves_open_is_as_the_algorithm_has_it():
    assert packaged_params(find_space("td3"), {})["net_arch"] == "big"
    assert packaged_params(find_space("td3"), {})["noise_type"] is None
    assert packaged_params(find_space("tqc"), {})["n_quantiles"] == 25
    assert packaged_params(find_space("qrdqn"), {})["n_quantiles"] == 200
    assert packaged_params(find_space("sac", her=True), {})["goal_selection_strategy"] == "future"
    assert packaged_params(find_space("ars"), {})["top_frac_size"] == 1.0
    params = packaged_params(find_space("dqn"), {"train_freq": 8, "gradient_steps": 2})
    assert (params["train_freq"], params["subsample_steps"]) == (8, 4)
    assert packaged_params(find_space("dqn"), {"train_freq": 8, "gradient_steps": -1})["subsample_steps"] == 1
    assert packaged_params(find_space("sac"), {"train_freq": [1, "episode"]})["train_freq"] == 1


def test_networks_are_near_by_depth_and_units():
    names = ("tiny", "small", "medium", "big")
    found = [nearest_network(layers, names) for layers in ([16], [64, 64], [128, 64], [300, 200], [400, 300], [512] * 3, [])]
    assert found == ["tiny", "small", "small", "medium", "big", "big", "tiny"]
    assert (
        packaged_params(find_space("ppo"), {"policy_kwargs": "dict(net_arch=dict(pi=[256, 256], vf=[8]))"})["net_arch"]
        == "medium"
    )


def test_settled_parameters_have_no_value():
    space = find_space("ppo").settle({"gamma": 0.9})
    assert "one_minus_gamma" not in packaged_params(space, {})


def test_a_space_of_one_s_own(tmp_path):
    path = tmp_path / "space.yml"
    path.write_text(
        """
gamma: {type: float, low: 0.9, high: 0.98, step: 0.03}
learning_rate: {type: float, low: 1e-4, high: 1e-2, log: true}
n_steps: {type: categorical, choices: [64, 128, 2048]}
n_epochs: {type: int, low: 2, high: 9, step: 2}
target_kl: {type: float, low: 0.01, high: 1, log: true}
normalize: {type: categorical, choices: [false, true, {norm_obs: true, norm_reward: false}]}
policy_kwargs.net_arch: {type: categorical, choices: [[8], "dict(vf=[64, 64], pi=[256])"]}
policy_kwargs.activation_fn: {type: categorical, choices: [nn.Tanh, nn.ReLU]}
env_kwargs.goal: {type: categorical, choices: [first, second]}
"""
    )
    entry = {
        "gamma": 0.94,
        "learning_rate": "lin_1e-3",
        "n_steps": 200,
        "normalize": "dict(norm_obs=True, norm_reward=False)",
        "policy_kwargs": "dict(net_arch=dict(pi=[256], vf=[64, 64]), activation_fn=nn.ReLU)",
        "env_kwargs": {"goal": "second"},
    }
    params = packaged_params(find_space("ppo", str(path)), entry)
    assert params == {
        "gamma": pytest.approx(0.93),
        "learning_rate": 1e-3,
        "n_steps": 128,
        "n_epochs": 8,  # PPO's own is 10.
        "target_kl": pytest.approx(0.1),  # There is none: the middle.
        "normalize": "{norm_obs: true, norm_reward: false}",
        "policy_kwargs.net_arch": "dict(vf=[64, 64], pi=[256])",
        "policy_kwargs.activation_fn": "nn.ReLU",
        "env_kwargs.goal": "second",
    }
    assert packaged_params(find_space("ppo", str(path)), {"normalize": True})["normalize"] is True


def test_the_number_that_a_hyperparameter_starts_with():
    assert [start_of(value) for value in ("lin_1e-3", "cos_0.1_0.2", {"kind": "linear", "start": 3}, [4, "step"], "5", 6)] == [
        1e-3,
        0.1,
        3,
        4,
        5,
        6,
    ]
    assert [start_of(value) for value in ("auto", None, True, [], {}, "lin_x", float("inf"))] == [None] * 7


def test_the_last_step_is_within_the_bounds_although_its_sum_is_not():
    assert nearest({"x": 0.99})("x", FloatDistribution(0.9, 0.95, step=0.05)) == 0.95
    assert 0.9 + 0.05 > 0.95


def test_what_a_file_says_is_told_be_it_in_the_space_or_not(tmp_path):
    """In the words of the space where it has them; what the file leaves open is left out, or is as the algorithm has it."""
    (tmp_path / "space.yml").write_text(
        "learning_rate: {type: float, low: 1.0e-4, high: 1.0e-3}\n"
        "n_steps: {type: categorical, choices: [32, 64]}\n"
        "policy_kwargs.net_arch: {type: categorical, choices: [[32], [32, 32]]}\n"
    )
    space = find_space("ppo", str(tmp_path / "space.yml"))
    names = packaged_params(space, {})
    entry = {"learning_rate": "lin_0.5", "n_steps": 64, "policy_kwargs": "dict(net_arch=[32])"}
    assert space.stated(names, entry) == {"learning_rate": "lin_0.5", "n_steps": 64, "policy_kwargs.net_arch": "[32]"}
    assert space.stated(names, {**entry, "policy_kwargs": {"net_arch": [9]}})["policy_kwargs.net_arch"] == "[9]"
    assert "policy_kwargs.net_arch" not in space.stated(names, {})
    built_in = find_space("ppo")
    known = built_in.stated(packaged_params(built_in, {}), {"gamma": 0.5, "policy_kwargs": {"net_arch": [7, 7]}})
    assert (known["one_minus_gamma"], known["net_arch"], known["n_steps_pow"]) == (0.5, "[7, 7]", 11)
    assert built_in.stated(["net_arch"], {}) == {"net_arch": "small"}
