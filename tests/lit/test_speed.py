"""What is done for speed changes what it says, nothing else, and is put back."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from io import BytesIO

import pytest
import pytorch_lightning as pl
import torch
from stable_baselines3 import A2C, PPO, SAC
from torch.distributions import Distribution

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import RLModule, RLTrainer
from lit_sb3_ray.lit.checkpoint import save_checkpoint
from lit_sb3_ray.lit.speed import fit_threads, grouped_updates, known_parameters, unchecked_distributions, use_fused_optimizers
from lit_sb3_ray.scale import processors
from lit_sb3_ray.scale.processors import usable_cpus

STEPS = 16


def ppo(hidden=8, **kwargs):
    network = {"net_arch": [hidden], **kwargs.pop("network", {})}
    options = {"n_steps": STEPS, "batch_size": STEPS, "n_epochs": 2, "policy_kwargs": network, "seed": 0, "device": "cpu"}
    return PPO("MlpPolicy", "TinyCount-v0", **(options | kwargs))


def sac(**kwargs):
    network = {"net_arch": [8]}
    options = {"learning_starts": 8, "batch_size": 8, "policy_kwargs": network, "seed": 0, "device": "cpu"}
    return SAC("MlpPolicy", "TinyCount-v0", **(options | kwargs))


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


def optimizers(model):
    found = [getattr(model, "ent_coef_optimizer", None)]
    found += [getattr(network, "optimizer", None) for network in model.policy.modules()]
    return [optimizer for optimizer in found if optimizer is not None]


def fused(model):
    return [bool(group.get("fused")) for optimizer in optimizers(model) for group in optimizer.param_groups]


class Watch(pl.Callback):
    """Looks at what training runs under."""

    def __init__(self):
        self.types, self.checks = set(), set()

    def on_fit_start(self, trainer, pl_module):
        policy = pl_module.algorithm.policy
        first = next(module for module in policy.modules() if isinstance(module, torch.nn.Linear))
        first.register_forward_hook(lambda module, inputs, output: self.types.add((output.requires_grad, output.dtype)))

    def on_train_batch_end(self, *_):
        self.checks.add(Distribution._validate_args)


class TestPrecision:
    @pytest.mark.parametrize("make", [ppo, sac])
    def test_bf16_is_for_updates_alone(self, make):
        watch, full = Watch(), Watch()
        low = RLTrainer(max_steps=3 * STEPS, precision="bf16-mixed", callbacks=watch).fit(make())
        high = RLTrainer(max_steps=3 * STEPS, callbacks=full).fit(make())
        # Rollouts need no gradient, and updates do; SAC's critics need none for their targets.
        assert (True, torch.bfloat16) in watch.types
        assert (False, torch.float32) in watch.types
        assert (True, torch.float32) not in watch.types
        assert {kind for _, kind in full.types} == {torch.float32}
        assert weights(low).dtype is torch.float32
        assert not torch.equal(weights(low), weights(high))
        assert torch.allclose(weights(low), weights(high), atol=0.05)


class TestFusedOptimizers:
    @pytest.mark.parametrize("make", [ppo, sac])
    def test_every_adam_is_fused_and_learns_the_same_but_for_the_last_bits(self, make):
        fast = RLTrainer(max_steps=3 * STEPS, fast=True).fit(make())
        plain = RLTrainer(max_steps=3 * STEPS).fit(make())
        assert fused(fast)
        assert all(fused(fast))
        assert not any(fused(plain))
        assert torch.allclose(weights(fast), weights(plain), atol=1e-4)

    def test_another_optimizer_is_left_alone(self):
        model = A2C("MlpPolicy", "TinyCount-v0", seed=0, device="cpu")
        use_fused_optimizers(model)
        assert fused(model) == [False]

    def test_it_survives_saving_and_loading(self):
        model = RLTrainer(max_steps=STEPS, fast=True).fit(ppo())
        buffer = BytesIO()
        model.save(buffer)
        buffer.seek(0)
        loaded = PPO.load(buffer, env=model.get_env(), device="cpu")
        assert fused(loaded) == [True]
        loaded.learn(STEPS)

    @pytest.mark.parametrize("before", [True, False])
    def test_a_checkpoint_is_gone_on_from_whatever_it_was_made_with(self, before, tmp_path):
        module = RLModule(ppo())
        trainer = RLTrainer(max_steps=3 * STEPS, fast=before)
        trainer.fit(module, until=STEPS)
        folder = save_checkpoint(tmp_path / "16", module.session, {})
        resumed = ppo()
        RLTrainer(max_steps=3 * STEPS, fast=True).fit(resumed, ckpt_path=folder)
        assert resumed.num_timesteps == 3 * STEPS
        assert fused(resumed) == [True]
        (state,) = {float(state["step"]) for state in resumed.policy.optimizer.state.values()}
        assert state == 3 * 2


class TestGroupedUpdates:
    @pytest.mark.parametrize(
        "kwargs", [{}, {"amsgrad": True}, {"weight_decay": 0.1}, {"maximize": True}, {"betas": (0.5, 0.9), "eps": 1e-5}]
    )
    @pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
    def test_they_are_the_same_bits_as_those_one_by_one(self, kind, kwargs):
        ends = []
        for grouped in (False, True):
            model = ppo(network={"optimizer_class": kind, "optimizer_kwargs": kwargs})
            with grouped_updates(model) if grouped else nullcontext():
                model.learn(3 * STEPS)
                # What a checkpoint would keep says nothing of it.
                assert model.policy.optimizer.state_dict()["param_groups"][0]["foreach"] is None
            ends.append(weights(model))
        assert torch.equal(*ends)

    def test_a_step_goes_through_all_weights_in_one_call(self, monkeypatch):
        calls = []
        real = torch._foreach_sqrt
        monkeypatch.setattr(torch, "_foreach_sqrt", lambda tensors: calls.append(len(tensors)) or real(tensors))
        model = ppo()
        with grouped_updates(model):
            model.learn(STEPS)
        assert set(calls) == {len(list(model.policy.parameters()))}

    def test_nothing_stays_behind(self):
        model = RLTrainer(max_steps=2 * STEPS).fit(sac())
        for optimizer in (model.actor.optimizer, model.critic.optimizer, model.ent_coef_optimizer):
            assert optimizer.param_groups[0]["foreach"] is None
            assert not {"step", "zero_grad"} & vars(optimizer).keys()
        assert "parameters" not in vars(model.policy)

    def test_a_choice_of_the_users_is_left_alone(self):
        model = ppo(network={"optimizer_kwargs": {"foreach": False}})
        with grouped_updates(model):
            assert model.policy.optimizer.param_groups[0]["foreach"] is False
        assert model.policy.optimizer.param_groups[0]["foreach"] is False

    def test_hooks_of_a_fused_optimizer_are_called(self):
        calls = []
        model = ppo()
        use_fused_optimizers(model)
        model.policy.optimizer.register_step_post_hook(lambda *_: calls.append(1))
        with grouped_updates(model):
            model.learn(STEPS)
        assert len(calls) == 2

    def test_a_fused_step_without_hooks_is_the_same(self):
        ends = []
        for bare in (False, True):
            model = ppo()
            use_fused_optimizers(model)
            with grouped_updates(model) if bare else nullcontext():
                model.learn(3 * STEPS)
            ends.append(weights(model))
        assert torch.equal(*ends)


class TestKnownParameters:
    def test_they_are_the_modules_own(self):
        policy = ppo().policy
        every, own = list(policy.parameters()), list(policy.parameters(recurse=False))
        with known_parameters(policy):
            assert list(map(id, policy.parameters())) == list(map(id, every))
            assert list(map(id, policy.parameters(recurse=False))) == list(map(id, own))

    def test_a_copy_has_its_own(self):
        policy = ppo().policy
        with known_parameters(policy):
            copy = deepcopy(policy)
        copied = list(copy.parameters())
        assert not set(map(id, copied)) & set(map(id, policy.parameters()))
        assert set(map(id, copied)) == set(map(id, dict(copy.named_parameters()).values()))


class TestThreads:
    @pytest.fixture(autouse=True)
    def restore(self):
        before = torch.get_num_threads()
        yield
        torch.set_num_threads(before)

    def test_a_small_network_gets_one_and_a_wish_is_granted(self):
        assert fit_threads(ppo(), -1) == torch.get_num_threads() == 1
        assert fit_threads(ppo(), 2) == torch.get_num_threads() == 2

    def test_a_large_network_gets_no_more_than_there_are(self, monkeypatch, tmp_path):
        large = ppo(hidden=500_000)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        assert fit_threads(large) == usable_cpus()
        # A container may use less of its machine's time than there are processors.
        (tmp_path / "cpu.max").write_text("100000 100000")
        monkeypatch.setattr(processors, "_QUOTA", tmp_path / "cpu.max")
        assert fit_threads(large) == 1


class TestDistributions:
    def test_their_checks_are_off_in_training_and_back_after_it(self):
        before, watch = Distribution._validate_args, Watch()
        RLTrainer(max_steps=STEPS, callbacks=watch).fit(ppo())
        assert watch.checks == {False}
        assert Distribution._validate_args is before

    def test_they_are_back_after_an_error_too(self):
        before = Distribution._validate_args

        def fail():
            with unchecked_distributions():
                raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            fail()
        assert Distribution._validate_args is before
