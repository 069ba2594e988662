"""Scalars changed under a trained model: its next training is that of a model made with them."""

import copy
import io

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import ARS, QRDQN, TQC, TRPO, CrossQ, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.tuning.schedule.scalars import SCALARS, set_scalars
from tiny_envs import MaskEnv

SMALL = {"policy_kwargs": {"net_arch": [8]}, "learning_rate": 1e-3, "device": "cpu"}
ROLLOUT = {**SMALL, "n_steps": 16, "gamma": 0.99}
PPO_LIKE = {**ROLLOUT, "batch_size": 8, "n_epochs": 2, "gae_lambda": 0.95, "ent_coef": 0.0, "max_grad_norm": 0.5}
REPLAY = {**SMALL, "learning_starts": 8, "batch_size": 8, "buffer_size": 200, "gamma": 0.99}
OLD = {
    PPO: PPO_LIKE,
    RecurrentPPO: {**PPO_LIKE, "policy_kwargs": {"net_arch": [8], "lstm_hidden_size": 4}},
    MaskablePPO: PPO_LIKE,
    A2C: {**ROLLOUT, "n_steps": 8},
    TRPO: {**ROLLOUT, "batch_size": 8, "n_critic_updates": 2, "cg_max_steps": 4, "sub_sampling_factor": 1},
    SAC: {**REPLAY, "ent_coef": 0.1},
    TQC: {**REPLAY, "ent_coef": 0.1},
    CrossQ: {**REPLAY, "ent_coef": 0.1, "policy_delay": 1},
    TD3: {**REPLAY, "policy_delay": 1},
    DDPG: REPLAY,
    DQN: {**REPLAY, "train_freq": 1, "target_update_interval": 1, "tau": 0.5},
    QRDQN: {**REPLAY, "train_freq": 1, "target_update_interval": 1, "tau": 0.5, "max_grad_norm": 10.0},
    ARS: {"policy": "LinearPolicy", "learning_rate": 0.02, "delta_std": 0.05, "n_delta": 2, "device": "cpu"},
}
ON_POLICY = {"learning_rate": 0.01, "gamma": 0.5, "gae_lambda": 0.2, "ent_coef": 0.3, "vf_coef": 0.1, "max_grad_norm": 1e-3}
PPO_NEW = {**ON_POLICY, "clip_range": 1e-3, "clip_range_vf": 1e-3, "n_epochs": 3, "target_kl": 1e-9}
OFF_POLICY = {"learning_rate": 0.01, "gamma": 0.5, "tau": 0.9}
NEW = {
    PPO: PPO_NEW,
    RecurrentPPO: {name: PPO_NEW[name] for name in ("learning_rate", "gamma", "gae_lambda", "clip_range")},
    MaskablePPO: {name: PPO_NEW[name] for name in ("learning_rate", "gamma", "gae_lambda", "clip_range")},
    A2C: ON_POLICY,
    TRPO: {
        "learning_rate": 0.01,
        "gamma": 0.5,
        "gae_lambda": 0.2,
        "n_critic_updates": 4,
        "cg_max_steps": 1,
        "target_kl": 1e-4,
    },
    SAC: {**OFF_POLICY, "ent_coef": 0.9},
    TQC: {**OFF_POLICY, "ent_coef": 0.9},
    CrossQ: {"learning_rate": 0.01, "gamma": 0.5, "ent_coef": 0.9},
    TD3: OFF_POLICY,
    DDPG: OFF_POLICY,
    DQN: {**OFF_POLICY, "target_update_interval": 3, "max_grad_norm": 1e-3},
    QRDQN: {**OFF_POLICY, "target_update_interval": 3, "max_grad_norm": 1e-3},
    ARS: {"learning_rate": 0.2, "delta_std": 0.5},
}
ONE_BY_ONE = [(cls, [name]) for cls in (PPO, A2C, SAC, TD3, DQN, TQC) for name in NEW[cls]]
TOGETHER = [(cls, list(NEW[cls])) for cls in (RecurrentPPO, MaskablePPO, TRPO, CrossQ, DDPG, QRDQN, ARS)]
BOX_ACTIONS = (SAC, TQC, CrossQ, TD3, DDPG)


def make_env(cls, gamma=0.99):
    if cls is MaskablePPO:
        return DummyVecEnv([lambda: Masked()])
    return VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1" if cls in BOX_ACTIONS else "CartPole-v1")]), gamma=gamma)


class Masked(MaskEnv):
    def action_masks(self):
        return self.allowed()


def make(cls, **changes):
    """A model whose training env normalises rewards with its own gamma, as experiments have it."""
    arguments = {**copy.deepcopy(OLD[cls]), **changes}
    policy = arguments.pop("policy", "MlpLstmPolicy" if cls is RecurrentPPO else "MlpPolicy")
    return cls(policy, make_env(cls, changes.get("gamma", 0.99)), seed=0, **arguments)


@pytest.fixture(scope="module")
def donors():
    """A saved model of each class, which has trained a little."""
    made = {}

    def saved(cls):
        if cls not in made:
            model = make(cls)
            model.learn(16)
            model.save(file := io.BytesIO())
            made[cls] = file.getvalue()
        return made[cls]

    return saved


@pytest.fixture(scope="module")
def unchanged(donors):
    """The weights that each class has when nothing is changed."""
    made = {}

    def weights(cls):
        if cls not in made:
            made[cls] = trained(loaded(cls, donors(cls)))
        return made[cls]

    return weights


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(model):
    """All weights after some more iterations from the same state of all generators."""
    model.set_random_seed(5)
    model.learn(24)
    return torch.cat([weights.detach().flatten().double() for weights in model.policy.state_dict().values()])


def loaded(cls, saved):
    return cls.load(io.BytesIO(saved), env=make_env(cls))


def label(value):
    return value[0] if isinstance(value, list) else value.__name__


@pytest.mark.parametrize(("cls", "names"), ONE_BY_ONE + TOGETHER, ids=label)
def test_the_next_iteration_is_that_of_a_model_made_so(donors, unchanged, cls, names):
    changes = {name: NEW[cls][name] for name in names}
    changed = loaded(cls, donors(cls))
    set_scalars(changed, changes)
    made_so = make(cls, **changes)
    made_so.set_parameters(loaded(cls, donors(cls)).get_parameters(), exact_match=True)
    made_so._n_updates = changed._n_updates
    made_so._n_calls = getattr(changed, "_n_calls", 0)
    weights = trained(changed)
    torch.testing.assert_close(weights, trained(made_so), rtol=0, atol=0)
    assert not torch.equal(weights, unchanged(cls))


def test_what_training_logs_and_saves_is_the_new_value(donors):
    model = loaded(PPO, donors(PPO))
    set_scalars(model, {"learning_rate": 0.0123, "clip_range": 0.05, "gamma": 0.9})
    model.learn(16)
    assert model.logger.name_to_value["train/learning_rate"] == 0.0123
    assert model.logger.name_to_value["train/clip_range"] == 0.05
    assert [group["lr"] for group in model.policy.optimizer.param_groups] == [0.0123]
    assert model.get_vec_normalize_env().gamma == model.rollout_buffer.gamma == 0.9
    model.save(file := io.BytesIO())
    again = loaded(PPO, file.getvalue())
    assert (again.learning_rate, again.lr_schedule(0.3), again.clip_range(0.3), again.gamma) == (0.0123, 0.0123, 0.05, 0.9)


def test_a_training_under_lightning_goes_on_with_the_new_value(donors):
    module = RLModule(loaded(PPO, donors(PPO)))
    trainer = RLTrainer(max_steps=64)
    trainer.fit(module, until=32)
    set_scalars(module.algorithm, {"learning_rate": 0.0123, "clip_range": 0.05})
    trainer.fit(module, until=64)
    assert module.num_timesteps == 64
    assert module.algorithm.logger.name_to_value["train/clip_range"] == 0.05
    assert [group["lr"] for group in module.algorithm.policy.optimizer.param_groups] == [0.0123]


def test_without_learning_rate_nothing_is_learned(donors):
    model = loaded(PPO, donors(PPO))
    before = [weights.detach().clone() for weights in model.policy.parameters()]
    set_scalars(model, {"learning_rate": 0.0})
    model.learn(32)
    assert all(torch.equal(old, new) for old, new in zip(before, model.policy.parameters(), strict=True))


def test_the_buffer_of_several_steps_discounts_with_the_new_gamma():
    model = DQN("MlpPolicy", make_env(DQN), n_steps=3, **OLD[DQN])
    set_scalars(model, {"gamma": 0.5})
    model.learn(20)
    assert model.replay_buffer.gamma == model.gamma == 0.5
    discounts = model.replay_buffer.sample(8).discounts
    assert np.isin(discounts, [0.5, 0.25, 0.125]).all()


def test_what_cannot_be_set_is_refused(donors):
    with pytest.raises(ConfigError, match="unknown scalar 'learnin_rate': did you mean 'learning_rate'"):
        set_scalars(loaded(PPO, donors(PPO)), {"learnin_rate": 1e-3})
    with pytest.raises(ConfigError, match="unknown scalar 'batch_size'"):
        set_scalars(loaded(SAC, donors(SAC)), {"batch_size": 64})
    with pytest.raises(ConfigError, match="CrossQ has no tau that could change"):
        set_scalars(loaded(CrossQ, donors(CrossQ)), {"tau": 0.1})
    with pytest.raises(ConfigError, match="TRPO has no max_grad_norm that could change"):
        set_scalars(loaded(TRPO, donors(TRPO)), {"max_grad_norm": 0.1})
    learns = make(SAC, ent_coef="auto")
    with pytest.raises(ConfigError, match="ent_coef is 'auto': SAC learns it"):
        set_scalars(learns, {"ent_coef": 0.1})


def test_all_that_is_said_to_change_is_tried_here():
    assert {name for changes in NEW.values() for name in changes} == set(SCALARS)
