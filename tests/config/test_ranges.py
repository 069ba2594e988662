"""Numbers that an algorithm would take without a word, and that mean nothing there, are told with their key and place."""

import pytest

from lit_sb3_ray.config.hyperparams import resolve
from lit_sb3_ray.config.ranges import RANGES
from lit_sb3_ray.errors import ConfigError


def entry(**values):
    return {"n_timesteps": 100, "policy": "MlpPolicy", **values}


@pytest.mark.parametrize(
    ("algo", "values", "told"),
    [
        ("ppo", {"gamma": 2}, r"from 0 to 1, not 2 \(gamma, x.yml\)"),
        ("ppo", {"learning_rate": "-1e-3"}, r"from 0 up, not '-1e-3' \(learning_rate"),
        ("ppo", {"clip_range": 0}, "above 0 up, not 0"),
        ("dqn", {"exploration_final_eps": 3}, "exploration_final_eps"),
        ("sac", {"tau": -1}, "from 0 to 1, not -1"),
        ("sac", {"target_update_interval": 0}, "from 1 up, not 0"),
        ("ars", {"policy": "LinearPolicy", "delta_std": -1}, "delta_std"),
        ("trpo", {"cg_max_steps": 0}, "cg_max_steps"),
        ("tqc", {"policy_kwargs": "dict(n_quantiles=0)"}, r"from 1 up, not 0 \(n_quantiles"),
        ("tqc", {"top_quantiles_to_drop_per_net": 99}, "fewer than the 25 quantiles of a critic, not 99"),
        ("td3", {"policy_kwargs": {"n_critics": 0}}, "n_critics"),
        ("ppo", {"learning_rate": 1e300}, r"that torch can hold, up to 3.4e\+38, not 1e\+300 \(learning_rate"),
        ("ppo", {"clip_range_vf": "1e40"}, r"up to 3.4e\+38, not '1e40' \(clip_range_vf"),
        ("ppo", {"n_epochs": 1e300}, r"at most 1099511627776, not a number of 301 digits \(n_epochs"),
    ],
)
def test_a_number_out_of_its_range_is_told(algo, values, told):
    with pytest.raises(ConfigError, match=told):
        resolve(entry(**values), algo, "x.yml")


@pytest.mark.parametrize("values", [{"gamma": 1}, {"learning_rate": 0}, {"learning_rate": "lin_0.001"}, {"target_kl": None}])
def test_the_bounds_themselves_and_schedules_are_taken(values):
    assert resolve(entry(**values), "ppo", "x.yml").algo == "ppo"


def test_the_defaults_of_all_algorithms_are_within():
    import inspect

    from lit_sb3_ray import ALGOS

    for algorithm in map(ALGOS.__getitem__, ALGOS):
        for name, parameter in inspect.signature(algorithm).parameters.items():
            if name in RANGES and isinstance(parameter.default, int | float):
                assert parameter.default in RANGES[name], (algorithm, name)


def test_arguments_of_callbacks_and_wrappers_have_their_types():
    callback = {"stable_baselines3.common.callbacks.StopTrainingOnMaxEpisodes": {"max_episodes": "abc"}}
    with pytest.raises(ConfigError, match="max_episodes of StopTrainingOnMaxEpisodes"):
        resolve(entry(callback=callback), "ppo", "x.yml")


def test_ars_tells_nothing_of_the_ends_of_episodes():
    callback = {"stable_baselines3.common.callbacks.StopTrainingOnMaxEpisodes": {"max_episodes": 3}}
    with pytest.raises(ConfigError, match=r"which ARS does not tell: use n_timesteps \(callback, x.yml\)"):
        resolve(entry(policy="LinearPolicy", callback=callback), "ars", "x.yml")
    assert resolve(entry(callback=callback), "ppo", "x.yml").callbacks
