"""`--search-space pkg.mod:function`: it is called with the trial, replayed from the drawn values, and tried at the start."""

import json
import pickle
import warnings

import optuna
import pytest

from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.space.warm_start import packaged_params
from lit_sb3_ray.tuning.storage import open_study

ENTRY = {"policy": "MlpPolicy", "n_timesteps": 1000, "policy_kwargs": "dict(ortho_init=False)"}


def draws(space, count, storage):
    study = open_study(str(storage), "s")
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    for _ in range(count):
        assert space.sample(study.ask()) is None
    return [row.params for row in study.get_trials()]


@pytest.mark.parametrize("name", ["by_names", "by_value"])
def test_draws_resolve_and_replay_from_the_storage(name, tmp_path):
    """Case G5."""
    space = find_space("ppo", f"tests.own_spaces:{name}")
    space.check(ENTRY)
    for params in draws(space, 40, tmp_path / "study.log"):
        hyperparams = space.hyperparams(params, ENTRY)
        resolved = resolve(merge(ENTRY, hyperparams), "ppo", "test").model_kwargs
        assert resolved["policy_kwargs"].keys() == {"ortho_init", "net_arch"}
        assert pickle.loads(pickle.dumps(space)).hyperparams(json.loads(json.dumps(params)), ENTRY) == hyperparams
        if name == "by_value":
            assert params.keys() == {"width", "rate", "steps"}
            assert resolved["learning_rate"](1.0) == params["rate"]
            assert hyperparams["n_steps"] % hyperparams["batch_size"] == 0
        else:
            assert hyperparams["gamma"] == params["gamma"]
            assert ("sde_sample_freq" in params) == hyperparams["use_sde"]


def test_what_it_draws_is_known_when_it_has():
    space = find_space("ppo", "tests.own_spaces:by_value")
    assert space.distributions() is None
    assert space.numbers_only
    assert not find_space("ppo", "tests.own_spaces:by_names").numbers_only


def test_what_the_command_line_gives_is_drawn_in_vain_with_a_warning(caplog):
    space = find_space("ppo", "tests.own_spaces:by_value")
    assert space.settle({"n_steps": 64, "vf_coef": 1}) == space
    assert "Given, and so drawn in vain by tests.own_spaces:by_value: n_steps" in caplog.text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("raising", "'tests.own_spaces:raising': it raises RuntimeError: no such thing (--search-space)"),
        ("unknown_name", "unknown PPO hyperparameter 'gama' (tests.own_spaces:unknown_name, --search-space): did you mean"),
        ("unknown_key", "did you mean 'learning_rate'?"),
        ("silent", "it draws nothing"),
        ("strange", "it returns [1] and not a dict of hyperparameters, or None"),
        ("tuples", "has the choice (8, 8): draw a name for it"),
        ("slashed", "the name 'a/b' must have no '/'"),
        ("NUMBER", "'tests.own_spaces:NUMBER' is no function but int 3 (--search-space)"),
        ("by_nmes", "unknown function in 'tests.own_spaces': 'by_nmes' (--search-space): did you mean 'by_names'?"),
        ("_private", "names something private"),
    ],
)
def test_what_is_wrong_is_told_at_the_start(name, told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ConfigError) as caught:
            find_space("ppo", f"tests.own_spaces:{name}")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_module_that_is_not_there_is_told():
    with pytest.raises(ConfigError, match=r"--search-space"):
        find_space("ppo", "tests.no_spaces:here")
    with pytest.raises(ConfigError, match=r"nowhere_at_all"):
        find_space("ppo", "nowhere_at_all:here")


def test_a_trial_that_has_drawn_less_is_told():
    space = find_space("ppo", "tests.own_spaces:by_value")
    with pytest.raises(ConfigError, match="it draws 'rate', which the trial has not drawn"):
        space.hyperparams({"width": 3}, ENTRY)


def test_a_warm_start_comes_near_by_name():
    space = find_space("ppo", "tests.own_spaces:by_names")
    entry = {**read_entries(None, "ppo").entries["Pendulum-v1"]}
    params = packaged_params(space, entry)
    assert params["gamma"] == 0.9
    assert params["use_sde"] is True
    assert params["sde_sample_freq"] == 4
    assert packaged_params(find_space("ppo", "tests.own_spaces:by_value"), entry).keys() == {"width", "rate", "steps"}
