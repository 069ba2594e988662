"""Search spaces: whatever is drawn makes hyperparameters that the algorithm takes, and what was drawn gives them again."""

import json
import pickle

import optuna
import pytest

from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.space.spaces import ON_POLICY

HINDSIGHT = ("ddpg", "dqn", "qrdqn", "sac", "td3", "tqc")
WITH_BATCHES = sorted(ON_POLICY - {"a2c"})
HER_ENTRY = {
    "policy": "MultiInputPolicy",
    "n_timesteps": 10,
    "replay_buffer_class": "HerReplayBuffer",
    "replay_buffer_kwargs": "dict(copy_info_dict=True, n_sampled_goal=9)",
    "policy_kwargs": "dict(net_arch=[8], optimizer_kwargs=dict(weight_decay=0.5))",
}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def draws(space, count, seed=0):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    for _ in range(count):
        trial = study.ask()
        space.sample(trial)
        yield trial.params


def entries(algo):
    """Packaged entries of several envs: the first, the last, and all with policy_kwargs or noise to merge with."""
    found = read_entries(None, algo).entries
    keys = list(found)
    told = [key for key in keys if {"policy_kwargs", "noise_type"} & found[key].keys()][:4]
    return {key: found[key] for key in dict.fromkeys([keys[0], "default", *told, keys[-1]])}


@pytest.mark.parametrize("algo", sorted(ALGOS))
def test_200_random_draws_resolve_over_packaged_entries_and_replay(algo):
    space = find_space(algo)
    some = list(entries(algo).items())
    for number, params in enumerate(draws(space, 200)):
        key, entry = some[number % len(some)]
        hyperparams = space.hyperparams(params, entry)
        resolved = resolve(merge(entry, hyperparams), algo, f"{algo}, {key}")
        assert resolved.n_timesteps == int(float(entry["n_timesteps"]))
        # A storage keeps parameters as JSON, and another process loads them.
        stored = json.loads(json.dumps(params))
        assert pickle.loads(pickle.dumps(space)).hyperparams(stored, entry) == hyperparams
        assert json.loads(json.dumps(hyperparams)) == hyperparams


@pytest.mark.parametrize("algo", HINDSIGHT)
def test_random_draws_with_hindsight_keep_the_rest_of_the_file_s_dicts(algo):
    space = find_space(algo, her=True)
    for params in draws(space, 50):
        hyperparams = space.hyperparams(params, HER_ENTRY)
        resolved = resolve(merge(HER_ENTRY, hyperparams), algo, "test").model_kwargs
        assert resolved["replay_buffer_kwargs"]["copy_info_dict"] is True
        assert resolved["replay_buffer_kwargs"]["n_sampled_goal"] == params["n_sampled_goal"] in range(1, 6)
        assert resolved["policy_kwargs"]["optimizer_kwargs"] == {"weight_decay": 0.5}
        assert resolved["policy_kwargs"]["net_arch"] != [8]


@pytest.mark.parametrize("algo", WITH_BATCHES)
@pytest.mark.parametrize("n_envs", [1, 3, 6, 10, 101])
def test_a_drawn_batch_divides_the_rollout(algo, n_envs):
    space = find_space(algo)
    entry = read_entries(None, algo).entries["default"]
    for params in draws(space, 40):
        hyperparams = space.hyperparams(params, entry, {"n_envs": n_envs})
        rollout, batch = hyperparams["n_steps"] * n_envs, hyperparams["batch_size"]
        assert rollout % batch == 0
        assert 0.5 <= batch / min(2 ** params["batch_size_pow"], rollout) <= 2
        assert space.hyperparams(params, entry, None, n_envs) == hyperparams


def test_no_noise_replays_as_no_noise_though_the_file_has_some():
    entry = read_entries(None, "td3").entries["Pendulum-v1"]
    assert entry["noise_type"] == "normal"
    space = find_space("td3")
    seen = set()
    for params in draws(space, 60):
        noise = resolve(merge(entry, space.hyperparams(params, entry)), "td3", "test").noise
        seen.add(params["noise_type"])
        assert (None if noise is None else (noise.kind, noise.std)) == (
            None if params["noise_type"] is None else (params["noise_type"], params["noise_std"])
        )
    assert seen == {None, "normal", "ornstein-uhlenbeck"}


def test_what_merges_with_a_string_of_classes_stays_readable_by_any_storage():
    entry = read_entries(None, "ppo").entries["HalfCheetah-v4"]
    space = find_space("ppo")
    hyperparams = space.hyperparams({"net_arch": "small"}, entry)
    assert hyperparams["policy_kwargs"] == {
        "log_std_init": -2,
        "ortho_init": False,
        "activation_fn": "torch.nn.modules.activation.ReLU",
        "net_arch": {"pi": [64, 64], "vf": [64, 64]},
    }


def test_distributions_are_known_where_no_bound_depends_on_a_draw():
    known = {algo: find_space(algo).distributions() for algo in ALGOS}
    assert {algo for algo, distributions in known.items() if distributions is None} == {"dqn", "qrdqn", "tqc"}
    for algo, distributions in known.items():
        if distributions is not None:
            params = next(iter(draws(find_space(algo), 1)))
            assert params.keys() == distributions.keys()
    assert {algo for algo in ALGOS if find_space(algo).numbers_only} == {"ars"}


@pytest.mark.parametrize(
    ("algo", "custom", "gone"),
    [
        ("ppo", {"gamma": 0.9, "n_steps": 128}, {"one_minus_gamma", "n_steps_pow"}),
        ("ppo", {"policy_kwargs": "dict(net_arch=[8])"}, {"net_arch", "activation_fn"}),
        ("ppo", {"vf_coef": 0.5}, set()),
        ("a2c", {"n_steps": 8, "gae_lambda": 0.9}, {"n_steps", "one_minus_gae_lambda"}),
        ("ars", {"n_delta": 16}, {"n_delta_pow"}),
        ("ars", {"n_top": 4}, {"top_frac_size"}),
        ("td3", {"noise_type": None}, {"noise_type", "noise_std"}),
        ("td3", {"noise_std": 0.2}, {"noise_std"}),
        ("dqn", {"train_freq": 4}, {"train_freq"}),
        ("dqn", {"train_freq": [1, "episode"]}, {"train_freq", "subsample_steps"}),
        ("dqn", {"gradient_steps": 1}, {"subsample_steps"}),
        ("tqc", {"policy_kwargs": {"n_quantiles": 3}}, {"net_arch", "n_quantiles"}),
        ("tqc", {"top_quantiles_to_drop_per_net": 8}, {"top_quantiles_to_drop_per_net"}),
        ("sac", {"replay_buffer_kwargs": {"n_sampled_goal": 2}}, {"n_sampled_goal", "goal_selection_strategy"}),
    ],
)
def test_what_the_command_line_gives_is_not_searched(algo, custom, gone, caplog):
    her = "replay_buffer_kwargs" in custom
    entry = HER_ENTRY if her else read_entries(None, algo).entries["default"]
    whole = find_space(algo, her=her)
    space = whole.settle(custom)
    all_names = set().union(*(params for params in draws(whole, 1)))
    for params in draws(space, 50):
        assert all_names - params.keys() == gone
        resolve(merge(entry, space.hyperparams(params, entry, custom), custom), algo, "test")
    told = [record.getMessage() for record in caplog.records]
    assert told == ([f"Given, and so not searched: {', '.join(sorted(gone))}"] if gone else [])


def test_settled_values_set_the_bounds_of_the_rest():
    for params in draws(find_space("dqn").settle({"train_freq": 2}), 30):
        assert params["subsample_steps"] in (1, 2)
    for params in draws(find_space("tqc").settle({"policy_kwargs": {"n_quantiles": 3}}), 30):
        assert params["top_quantiles_to_drop_per_net"] in (0, 1, 2)
    assert find_space("dqn").settle({"train_freq": 4}).distributions() is not None
    given = {"top_quantiles_to_drop_per_net": 8}
    space = find_space("tqc").settle(given)
    assert space.hyperparams({"n_quantiles": 5}, {}, given)["policy_kwargs"] == {"n_quantiles": 9}
    assert find_space("dqn").hyperparams({"subsample_steps": 2}, {}, {"train_freq": 8}) == {"gradient_steps": 4}


def test_no_space_that_is_settled_altogether():
    given = {"n_delta": 8, "learning_rate": 0.1, "delta_std": 0.1, "n_top": 4}
    with pytest.raises(ConfigError, match="nothing is left to search of the built-in space of ars"):
        find_space("ars").settle(given)


@pytest.mark.parametrize("algo", sorted(ALGOS))
def test_every_corner_of_a_built_in_space_is_valid(algo):
    for key, entry in entries(algo).items():
        find_space(algo).check(entry, where=key)


def test_a_class_of_one_s_own_is_searched_as_what_it_descends_from():
    space = find_space("sb3_contrib:CrossQ")
    params = next(iter(draws(space, 1)))
    assert "tau" not in params
    assert "gradient_steps" in space.hyperparams(params, {})
    with pytest.raises(ConfigError, match="no search space for"):
        find_space("stable_baselines3.common.base_class:BaseAlgorithm")


@pytest.mark.parametrize("source", ["spaces.json", "pkg.mod", ""])
def test_what_is_neither_a_file_nor_a_function_is_refused(source):
    with pytest.raises(ConfigError, match=r"expected a .yml or .yaml file, or pkg.mod:function"):
        find_space("ppo", source)
