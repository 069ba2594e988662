"""`--search-space FILE.yml`: what it says is drawn, put where it belongs, and whatever is wrong in it is told in one line."""

import json
import pickle

import optuna
import pytest

from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import merge, resolve
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.storage import open_study

SPACE = """
gamma: {type: float, low: 0.9, high: 0.9999}
learning_rate: {type: float, low: 1e-5, high: 1e-2, log: true}
n_steps: {type: int, low: 32, high: 100, step: 32}
batch_size: {type: categorical, choices: [64, 256, 4096]}
ent_coef: {type: float, low: 0, high: 0.1, step: 0.03}
clip_range: {type: categorical, choices: [0.1, lin_0.2]}
normalize: {type: categorical, choices: [true, false, {norm_obs: true, norm_reward: false}]}
policy_kwargs.net_arch: {type: categorical, choices: [[64, 64], "dict(pi=[64], vf=[32])", {pi: [8], vf: [16]}]}
policy_kwargs.activation_fn: {type: categorical, choices: [nn.Tanh, nn.ELU]}
policy_kwargs.optimizer_kwargs.weight_decay: {type: float, low: 1e-6, high: 1e-2, log: true}
"""
ENTRY = {
    "policy": "MlpPolicy",
    "n_timesteps": 1000,
    "n_envs": 2,
    "policy_kwargs": "dict(log_std_init=-2, ortho_init=False, optimizer_kwargs=dict(eps=1e-5), activation_fn=nn.GELU)",
}


@pytest.fixture
def space_file(tmp_path):
    def write(text):
        path = tmp_path / "space.yml"
        path.write_text(text)
        return str(path)

    return write


def draws(space, count, storage=None):
    study = open_study(storage, "s" if storage else None)
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    for _ in range(count):
        trial = study.ask()
        space.sample(trial)
    return [row.params for row in study.get_trials()]


def test_draws_are_put_where_they_belong_and_replay_from_the_storage(space_file, tmp_path):
    """Case G5."""
    space = find_space("ppo", space_file(SPACE))
    seen = {"normalize": [], "net_arch": []}
    for params in draws(space, 100, str(tmp_path / "study.log")):
        hyperparams = space.hyperparams(params, ENTRY)
        resolved = resolve(merge(ENTRY, hyperparams), "ppo", "test")
        kwargs = resolved.model_kwargs
        assert kwargs["gamma"] == params["gamma"]
        assert kwargs["n_steps"] in (32, 64, 96)
        assert (kwargs["n_steps"] * 2) % kwargs["batch_size"] == 0
        assert params["ent_coef"] in (0.0, 0.03, 0.06, 0.09)
        policy = kwargs["policy_kwargs"]
        assert (policy["log_std_init"], policy["ortho_init"]) == (-2, False)
        assert policy["activation_fn"].__name__ in ("Tanh", "ELU")
        assert policy["optimizer_kwargs"].keys() == {"eps", "weight_decay"}
        assert pickle.loads(pickle.dumps(space)).hyperparams(json.loads(json.dumps(params)), ENTRY) == hyperparams
        seen["normalize"].append(hyperparams["normalize"])
        seen["net_arch"].append(policy["net_arch"])
    for choice in (True, False, {"norm_obs": True, "norm_reward": False}):
        assert choice in seen["normalize"]
    for choice in ([64, 64], {"pi": [64], "vf": [32]}, {"pi": [8], "vf": [16]}):
        assert choice in seen["net_arch"]


def test_choices_are_drawn_as_what_a_storage_can_keep(space_file):
    distributions = find_space("ppo", space_file(SPACE)).distributions()
    assert distributions["policy_kwargs.net_arch"].choices == ("[64, 64]", "dict(pi=[64], vf=[32])", "{pi: [8], vf: [16]}")
    assert distributions["normalize"].choices == (True, False, "{norm_obs: true, norm_reward: false}")
    assert distributions["batch_size"].choices == (64, 256, 4096)
    assert distributions["n_steps"] == optuna.distributions.IntDistribution(32, 96, step=32)


def test_choices_that_optuna_takes_for_one_are_kept_apart(space_file):
    space = find_space("ppo", space_file("normalize_advantage: {type: categorical, choices: [1, true, 1.0, .inf, null]}"))
    labels = space.distributions()["normalize_advantage"].choices
    assert labels == ("1", "true", "1.0", ".inf", None)
    meant = [space.hyperparams({"normalize_advantage": label}, {})["normalize_advantage"] for label in labels]
    assert [(type(value), value) for value in meant[:3]] == [(int, 1), (bool, True), (float, 1.0)]
    assert meant[3:] == [float("inf"), None]


def test_whole_dicts_merge_and_then_what_goes_inside(space_file):
    text = """
policy_kwargs.net_arch: {type: categorical, choices: [[4]]}
policy_kwargs: {type: categorical, choices: ["dict(net_arch=[64], share_features_extractor=False)"]}
replay_buffer_kwargs.n_sampled_goal: {type: int, low: 2, high: 2}
env_kwargs.goal: {type: int, low: 1, high: 1}
"""
    space = find_space("sac", space_file(text))
    entry = {"policy_kwargs": {"use_sde": False, "n_critics": 1}, "replay_buffer_kwargs": "dict(copy_info_dict=True)"}
    assert space.hyperparams(draws(space, 1)[0], entry) == {
        "policy_kwargs": {"use_sde": False, "n_critics": 1, "net_arch": [4], "share_features_extractor": False},
        "replay_buffer_kwargs": {"copy_info_dict": True, "n_sampled_goal": 2},
        "env_kwargs": {"goal": 1},
    }
    assert entry["policy_kwargs"] == {"use_sde": False, "n_critics": 1}


def test_a_file_s_batch_follows_a_drawn_rollout(space_file):
    space = find_space("ppo", space_file("n_steps: {type: categorical, choices: [32, 24]}"))
    entry = {"batch_size": 256}
    assert space.hyperparams({"n_steps": 32}, entry) == {"n_steps": 32, "batch_size": 32}
    assert space.hyperparams({"n_steps": 32}, entry, None, 8) == {"n_steps": 32}
    assert space.hyperparams({"n_steps": 24}, entry, {"batch_size": 256}) == {"n_steps": 24}
    # For an off-policy algorithm n_steps is something else.
    off_policy = find_space("sac", space_file("n_steps: {type: categorical, choices: [3]}"))
    assert off_policy.hyperparams({"n_steps": 3}, entry) == {"n_steps": 3}


def test_what_the_command_line_gives_is_not_searched(space_file):
    space = find_space("ppo", space_file(SPACE)).settle({"policy_kwargs": {}, "gamma": 0.5})
    assert space.distributions().keys() == {"learning_rate", "n_steps", "batch_size", "ent_coef", "clip_range", "normalize"}
    # A row of before can still be read.
    assert space.hyperparams({"gamma": 0.9}, ENTRY) == {"gamma": 0.9}
    with pytest.raises(ConfigError, match=r"nothing is left to search of .*space.yml"):
        find_space("ppo", space_file("gamma: {type: float, low: 0.9, high: 1}")).settle({"gamma": 0.5})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gama: {type: float, low: 0, high: 1}", "unknown PPO hyperparameter 'gama' (FILE): did you mean 'gamma'?"),
        ("one_minus_gamma: {type: float, low: 0, high: 1}", "unknown PPO hyperparameter 'one_minus_gamma'"),
        ("seed: {type: int, low: 0, high: 1}", "'seed' is no hyperparameter: use --seed (FILE)"),
        ("n_envs: {type: int, low: 1, high: 4}", "'n_envs' cannot be searched: a trial's resources"),
        ("n_timesteps: {type: int, low: 1, high: 4}", "'n_timesteps' cannot be searched: all trials have one budget"),
        ("policy_kwargs.net_arc: {type: int, low: 1, high: 4}", "unknown argument of PPO's policies 'net_arc'"),
        ("policy_kwarg.net_arch: {type: int, low: 1, high: 4}", "did you mean 'policy_kwargs'?"),
        ("gamma.x: {type: int, low: 1, high: 4}", "unknown dict of hyperparameters in 'gamma.x': 'gamma' (FILE)"),
        ("policy_kwargs.: {type: int, low: 1, high: 4}", "expected the name of a hyperparameter"),
        ("env_kwargs.a/b: {type: int, low: 1, high: 4}", "expected the name of a hyperparameter"),
        ("3: {type: int, low: 1, high: 4}", "expected the name of a hyperparameter, such as gamma"),
        ("env_kwargs.a b: {type: int, low: 1, high: 4}", "expected the name of a hyperparameter"),
        (
            "normalize: {type: categorical, choices: [true]}\nnormalize.norm_obs: {type: categorical, choices: [true]}",
            "'normalize' is searched as a whole, and so nothing inside of it can be: 'normalize.norm_obs' (FILE)",
        ),
        ("gamma: 0.9", "expected {type: float|int|categorical, ...}, not 0.9 (gamma, FILE)"),
        ("gamma: {low: 0, high: 1}", "it has no type: one of float, int, categorical (gamma, FILE)"),
        ("gamma: {type: flaot, low: 0, high: 1}", "unknown type 'flaot' (gamma, FILE): did you mean 'float'?"),
        ("gamma: {type: [1], low: 0, high: 1}", "unknown type '[1]' (gamma, FILE)"),
        ("gamma: {type: float, lo: 0, high: 1}", "unknown field of a float parameter 'lo' (gamma, FILE): did you mean 'low'?"),
        ("gamma: {type: categorical, low: 0}", "unknown field of a categorical parameter 'low'"),
        ("gamma: {type: float, low: 0}", "it has no high (gamma, FILE)"),
        ("gamma: {type: float, low: a, high: 1}", "low: expected a number, not 'a' (gamma, FILE)"),
        ("gamma: {type: float, low: true, high: 1}", "low: expected a number, not True"),
        ("gamma: {type: float, low: 0, high: .inf}", "high: expected a number, not inf"),
        ("n_steps: {type: int, low: 1, high: 1" + "0" * 400 + "}", "high: expected a number up to 9.0072e+15, not 1000"),
        ("gamma: {type: float, low: 0, high: 1e+99, step: 1e-9}", "step: 1e-09 is too small for a range from 0.0 to 1e+99"),
        ("n_steps: {type: int, low: 0.5, high: 4}", "low: expected a whole number, not 0.5 (n_steps, FILE)"),
        ("gamma: {type: float, low: 2, high: 1}", "low 2.0 is above high 1.0 (gamma, FILE)"),
        ("gamma: {type: float, low: 0, high: 1, log: true}", "low: with log it must be above 0, not 0.0 (gamma, FILE)"),
        ("n_steps: {type: int, low: 0, high: 9, log: true}", "low: with log it must be at least 1, not 0"),
        ("gamma: {type: float, low: 0, high: 1, log: 7}", "log: expected true or false, not 7"),
        ("gamma: {type: float, low: 0.1, high: 1, log: true, step: 0.1}", "log and step exclude each other"),
        ("gamma: {type: float, low: 0.1, high: 1, step: 0}", "step: expected a number above 0, not 0.0"),
        ("n_steps: {type: int, low: 1, high: 9, step: 0.5}", "step: expected a whole number, not 0.5"),
        ("gamma: {type: categorical, choices: []}", "choices: expected a list of at least one value, not no choices"),
        ("gamma: {type: categorical}", "choices: expected a list of at least one value"),
        ("gamma: {type: categorical, choices: 0.9}", "choices: expected a list of at least one value, not 0.9"),
        ("gamma: {type: categorical, choices: [0.9, 0.9]}", "choices: 0.9 stands twice (gamma, FILE)"),
        ("normalize: {type: categorical, choices: ['[1]', [1]]}", "choices: '[1]' stands for two values"),
        ("gamma: {type: int, low: 0, high: 1}\ngamma: {type: int, low: 0, high: 1}", "the key 'gamma' stands twice"),
        ("- gamma", "expected parameters by the names of hyperparameters, not list"),
        ("", "not an empty file (FILE)"),
        ("gamma: {type: float", "not valid YAML"),
        ("gamma: !!python/object/apply:os.getcwd []", "refused YAML content"),
    ],
)
def test_bad_files_are_told_in_one_line(space_file, text, told):
    path = space_file(text)
    with pytest.raises(ConfigError) as caught:
        find_space("ppo", path)
    message = str(caught.value).replace(path, "FILE")
    assert told in message
    assert "FILE" in message
    assert "\n" not in message


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no file '.*gone.yml'"):
        find_space("ppo", str(tmp_path / "gone.yml"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gamma: {type: categorical, choices: [0.9, 0.99, high]}", "gamma, FILE"),
        ("n_epochs: {type: int, low: 0, high: 4}", "expected a whole number from 1 up, not 0 (n_epochs, FILE)"),
        ("policy_kwargs.net_arch: {type: categorical, choices: [[64], [0]]}", "net_arch, policy_kwargs, FILE"),
        ("policy_kwargs.activation_fn: {type: categorical, choices: [nn.Tanh, nn.Tann]}", "nn.Tann"),
        ("policy_kwargs.activation_fn: {type: categorical, choices: [__import__]}", "FILE"),
    ],
)
def test_values_that_no_trial_could_train_with_are_told_before_the_first(space_file, text, told):
    path = space_file(text)
    space = find_space("ppo", path)
    with pytest.raises(ConfigError) as caught:
        space.check(ENTRY)
    message = str(caught.value).replace(path, "FILE")
    assert told in message
    assert "FILE" in message


def test_the_packaged_entries_pass_the_check(space_file):
    space = find_space("ppo", space_file(SPACE))
    for key in ("default", "CartPole-v1", "Pendulum-v1", "HalfCheetah-v4"):
        space.check(read_entries(None, "ppo").entries[key])


def test_a_trial_of_another_space_is_told(space_file):
    space = find_space("ppo", space_file("clip_range: {type: categorical, choices: [0.1, 0.2]}"))
    with pytest.raises(ConfigError, match="the trial has drawn 'gamma', which is not in the search space"):
        space.hyperparams({"gamma": 0.9}, {})
    with pytest.raises(ConfigError, match=r"'clip_range' has no choice 0\.3"):
        space.hyperparams({"clip_range": 0.3}, {})
