"""Every mistake in an entry is one line that names the key, its origin and the nearest right name, and runs nothing."""

from __future__ import annotations

import pytest
from stable_baselines3.common.policies import ActorCriticPolicy

from lit_sb3_ray.config.hyperparams import merge, origins, resolve
from lit_sb3_ray.config.problems import MissingPackageError
from lit_sb3_ray.errors import ConfigError

WHERE = "own.yml, entry 'CartPole-v1'"
BASE = {"policy": "MlpPolicy", "n_timesteps": 1e5}


def entry(**values):
    return {**BASE, **values}


BAD = [
    ("ppo", {"nminibatches": 4}, "unknown PPO hyperparameter 'nminibatches': did you mean 'batch_size'"),
    ("ppo", {"learnig_rate": 1}, "'learnig_rate'.*did you mean 'learning_rate'"),
    ("ppo", {"env_wraper": "x"}, "did you mean 'env_wrapper'"),
    ("ppo", {"seed": 1}, "'seed' is no hyperparameter: use --seed"),
    ("ppo", {"n_steps": "many"}, "expected a whole number, not 'many' \\(n_steps"),
    ("ppo", {"n_steps": 1.5}, "not 1.5"),
    ("ppo", {"n_steps": True}, "not True"),
    ("ppo", {"n_steps": 0}, "from 1 up, not 0 \\(n_steps"),
    ("ppo", {"n_epochs": None}, "not None"),
    ("ppo", {"gamma": [0.9]}, "expected a number"),
    ("ppo", {"gamma": float("nan")}, "not nan"),
    ("ppo", {"use_sde": "False"}, "true or false, not 'False'"),
    ("ppo", {"clip_range": None}, "clip_range"),
    ("ppo", {"learning_rate": "exp_0.001"}, "unknown schedule kind 'exp'"),
    ("ppo", {"policy": "MlPolicy"}, "did you mean 'MlpPolicy'"),
    ("ppo", {"policy": "subprocess.Popen"}, "is no policy"),
    ("ppo", {"policy_kwargs": "dict(net_arh=[64])"}, "unknown ActorCriticPolicy argument 'net_arh'.*did you mean 'net_arch'"),
    ("ppo", {"policy_kwargs": "dict(net_arch=64)"}, "expected a list or a mapping or null, not 64"),
    ("ppo", {"policy_kwargs": "dict(use_sde=True)"}, "handed to the policy by the algorithm"),
    ("ppo", {"policy_kwargs": "[1]"}, "policy_kwargs"),
    ("ppo", {"policy_kwargs": "dict(activation_fn=subprocess.Popen)"}, "no torch module"),
    ("ppo", {"policy_kwargs": "dict(optimizer_class=nn.ReLU)"}, "Optimizer class"),
    ("ppo", {"env_wrapper": "subprocess.Popen"}, "no environment wrapper"),
    ("ppo", {"env_wrapper": [{"gymnasium.wrappers.TimeLimit": {"max_steps": 1}}]}, "did you mean 'max_episode_steps'"),
    ("ppo", {"env_wrapper": "gymnasium.wrappers.TimeLimit"}, "needs the argument 'max_episode_steps'"),
    ("ppo", {"env_wrapper": [{"gymnasium.wrappers.TimeLimit": 3}]}, "mapping of arguments"),
    ("ppo", {"env_wrapper": [{"a.B": None, "c": 1}]}, "check the indentation"),
    ("ppo", {"vec_env_wrapper": "gymnasium.wrappers.TimeLimit"}, "no VecEnv wrapper"),
    ("ppo", {"callback": {"subprocess.Popen": {"args": ["touch", "trace"]}}}, "no callback"),
    ("ppo", {"callback": "stable_baselines3.common.callbacks.EvalCallback"}, "needs the argument 'eval_env'"),
    ("ppo", {"normalize": "dict(norm_rew=False)"}, "did you mean 'norm_reward'"),
    ("ppo", {"normalize": {"training": False}}, "filled in by the program"),
    ("ppo", {"normalize": 3}, "not 3"),
    ("ppo", {"monitor_kwargs": "dict(info_keyword=('a',))"}, "did you mean 'info_keywords'"),
    ("ppo", {"env_kwargs": "[1]"}, "expected a mapping"),
    ("ppo", {"frame_stack": "two"}, "frame_stack"),
    ("ppo", {"monitor_kwargs": {"info_keywords": 3}}, "a list of names, not 3 \\(info_keywords"),
    ("ppo", {"monitor_kwargs": {"reset_keywords": [1]}}, "a list of names, not \\[1\\]"),
    ("ppo", {"monitor_kwargs": {"allow_early_resets": "no"}}, "true or false, not 'no'"),
    ("ppo", {"n_envs": 100_001}, "at most 100000, not 100001 \\(n_envs"),
    ("ppo", {"n_steps": 10**13}, "at most .*n_steps"),
    ("ppo", {"batch_size": 1}, "from 2 up, not 1, since advantages are normalised in each batch \\(batch_size, own.yml"),
    ("ppo_mask", {"batch_size": 1.0}, "from 2 up, not 1,"),
    ("ppo", {"policy_kwargs": "dict(activation_fn=nn.Linear)"}, "Linear needs the argument 'in_features' \\(activation_fn"),
    ("sac", {"ent_coef": "abc"}, "auto_ and the positive number to start with, not 'abc' \\(ent_coef, own.yml"),
    ("tqc", {"ent_coef": "auto_x"}, "not 'auto_x' \\(ent_coef"),
    ("crossq", {"ent_coef": "auto_-1"}, "not 'auto_-1' \\(ent_coef"),
    ("sac", {"ent_coef": "auto_0.1_5"}, "not 'auto_0.1_5'"),
    ("sac", {"target_entropy": "abc"}, "expected a number or auto, not 'abc' \\(target_entropy, own.yml"),
    ("sac", {"ent_coef": float("inf")}, "expected a finite number, not inf \\(ent_coef"),
    ("ppo", {"ent_coef": "auto"}, "expected a number, not 'auto' \\(ent_coef"),
    ("sac", {"buffer_size": 1e15}, "at most .*buffer_size"),
    ("ppo", {"frame_stack": 10_001}, "at most 10000.*frame_stack"),
    ("ppo", {"frame_stack": 10**400}, "at most .*frame_stack"),
    ("ppo", {"n_timesteps": 10**400}, "at most .*n_timesteps"),
    ("ppo", {"learning_rate": float("inf")}, "a schedule cannot be inf \\(learning_rate"),
    ("ppo", {"clip_range": float("nan")}, "a schedule cannot be nan"),
    ("ppo", {"learning_rate": 10**400}, "a schedule cannot be"),
    ("ppo", {"learning_rate": "lin_inf"}, "finite numbers"),
    ("ars", {"n_top": 0}, "from 1 up, not 0 \\(n_top"),
    ("ppo", {"callback": "stable_baselines3.common.callbacks.BaseCallback"}, "abstract callback, without _on_step"),
    ("ppo", {"vec_env_wrapper": "stable_baselines3.common.vec_env.VecEnvWrapper"}, "abstract VecEnv wrapper"),
    ("ppo", {"policy_kwargs": "dict(net_arch=[64, 0])"}, "layers of 1 to 1048576 units, not 0 \\(net_arch"),
    ("ppo", {"policy_kwargs": "dict(net_arch=dict(pi=[-64]))"}, "not -64"),
    ("sac", {"policy_kwargs": "dict(net_arch=[64.5])"}, "not 64.5"),
    ("ppo", {"policy_kwargs": "dict(optimizer_kwargs=dict(ep=1))"}, "unknown Adam argument 'ep'.*did you mean 'eps'"),
    ("ppo", {"rollout_buffer_kwargs": {"sise": 1}}, "unknown RolloutBuffer argument 'sise'"),
    ("sac", {"replay_buffer_kwargs": {"handle_timeout": True}}, "did you mean 'handle_timeout_termination'"),
    ("sac", {"n_envs": 2, "train_freq": [1, "episode"]}, "with n_envs 2, train_freq is to be in steps.*\\(train_freq"),
    ("ppo", {"env_wrapper": [{"gymnasium.wrappers.TimeLimit": "max_episode_steps:3"}]}, "'max_episode_steps: 3'"),
    ("ppo", {"env_wrapper": [{"gymnasium.wrappers.TimeLimit": {"max_episode_steps:3": None}}]}, "a space after the colon"),
    ("ppo", {"env_wrapper": "gymnasium.wrappers.TimeLimit:{max_episode_steps:3}"}, "a space after the colon"),
    ("ppo", {"n_envs": -1}, "n_envs"),
    ("ppo", {"n_timesteps": 0}, "from 1 up, not 0 \\(n_timesteps"),
    ("ppo", {"n_timesteps": -5}, "n_timesteps"),
    ("ppo", {"n_timesteps": 1.5}, "n_timesteps"),
    ("ppo", {"n_timesteps": float("inf")}, "n_timesteps"),
    ("ppo", {"noise_type": "normal", "noise_std": 0.1}, "takes no action noise"),
    ("td3", {"noise_type": "norml", "noise_std": 0.1}, "did you mean 'normal'"),
    ("td3", {"noise_type": "normal"}, "needs a noise_std"),
    ("td3", {"noise_std": 0.1}, "needs a noise_type"),
    ("sac", {"train_freq": [1, "epsode"]}, "did you mean 'episode'"),
    ("sac", {"train_freq": [1, 2, 3]}, "train_freq"),
    ("sac", {"train_freq": 0}, "train_freq"),
    ("sac", {"replay_buffer_class": "RolloutBuffer"}, "RolloutBuffer is not a ReplayBuffer class"),
    (
        "sac",
        {"replay_buffer_class": "HerReplayBuffer", "replay_buffer_kwargs": "dict(online_sampling=True)"},
        "HerReplayBuffer argument",
    ),
]


@pytest.mark.parametrize(("algo", "values", "message"), BAD, ids=[f"{algo}-{values}"[:60] for algo, values, _ in BAD])
def test_bad_values_are_one_line_with_key_file_and_nearest_name(algo, values, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message) as caught:
        resolve(entry(**values), algo, WHERE)
    assert WHERE in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("algo", "values"),
    [
        ("a2c", {"policy_kwargs": "dict(optimizer_kwargs=dict(eps=1e-5))"}),
        ("sac", {"policy_kwargs": "dict(net_arch=dict(pi=[64], qf=[64, 64]))", "train_freq": [1, "episode"]}),
        ("sac", {"n_envs": 2, "train_freq": 4, "replay_buffer_kwargs": {"handle_timeout_termination": False}}),
        (
            "ppo",
            {"policy_kwargs": "dict(optimizer_kwargs=dict(weight_decay=0.1), net_arch=[])", "max_grad_norm": float("inf")},
        ),
        ("ppo", {"env_wrapper": {"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 3}}}),
    ],
)
def test_what_lies_close_to_the_bounds_is_taken(algo, values):
    resolve(entry(**values), algo, WHERE)


def test_layers_that_only_a_policy_of_ones_own_takes_are_let_pass():
    class Own(ActorCriticPolicy):
        def __init__(self, *args, net_arch=64, **kwargs):
            super().__init__(*args, net_arch=[net_arch], **kwargs)

    resolved = resolve(entry(policy=Own, policy_kwargs={"net_arch": 32}), "ppo", WHERE)
    assert resolved.model_kwargs["policy_kwargs"] == {"net_arch": 32}


@pytest.mark.parametrize("names", ["is_success", ["is_success"], ("is_success",)])
def test_monitor_keywords_become_a_tuple(names):
    assert resolve(entry(monitor_kwargs={"info_keywords": names}), "ppo", WHERE).monitor_kwargs == {
        "info_keywords": ("is_success",)
    }


@pytest.mark.parametrize(
    "key", ["policy_kwargs", "normalize", "monitor_kwargs", "env_kwargs", "replay_buffer_class", "replay_buffer_kwargs"]
)
def test_a_function_call_in_any_value_does_nothing(key, tmp_path):
    trace = tmp_path / "trace"
    with pytest.raises(ConfigError, match=f"function call and was not made.*{key}"):
        resolve(entry(**{key: f"__import__('os').system('touch {trace}')"}), "sac", WHERE)
    assert not trace.exists()


def test_a_missing_policy_names_the_known_ones():
    with pytest.raises(ConfigError, match="no policy: one of CnnPolicy, MlpPolicy, MultiInputPolicy"):
        resolve({"n_timesteps": 1}, "ppo", WHERE)


def test_a_bad_override_names_the_flag_instead_of_the_file():
    overrides = {"nminibatches": 4}
    with pytest.raises(ConfigError, match=r"\(--hyperparams\)"):
        resolve(merge(BASE, None, overrides), "ppo", WHERE, sources=origins(None, overrides))


def test_a_missing_optional_package_names_its_extra():
    with pytest.raises(MissingPackageError, match=r"lit-sb3-ray\[highway\]"):
        resolve(entry(env_wrapper="highway_env.no_such_part.Wrapper"), "ppo", WHERE)
