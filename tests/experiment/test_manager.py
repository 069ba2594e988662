"""What an experiment's manager fixes beyond what the pieces it puts together do."""

from __future__ import annotations

import torch
from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray import ExperimentManager


def test_a_seed_gives_the_same_first_weights_whatever_number_of_threads_torch_has(tmp_path):
    before, weights = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            manager = ExperimentManager(None, "a2c", "CartPole-v1", str(tmp_path), eval_freq=-1, seed=3, verbose=0)
            model = manager.setup_experiment()
            assert torch.get_num_threads() == threads
            weights.append(model.get_parameters()["policy"])
            model.get_env().close()
    finally:
        torch.set_num_threads(before)
    assert [name for name in weights[0] if not torch.equal(weights[0][name], weights[1][name])] == []


def test_learning_takes_the_threads_it_needs_and_gives_them_back(tmp_path):
    class Threads(BaseCallback):
        def _on_step(self):
            seen.add(torch.get_num_threads())
            return True

    before, seen = torch.get_num_threads(), set()
    figures = {"n_envs": 1, "n_timesteps": 10}
    try:
        torch.set_num_threads(2)
        manager = ExperimentManager(
            None, "a2c", "CartPole-v1", str(tmp_path), eval_freq=-1, verbose=0, hyperparams=figures, callbacks=[Threads()]
        )
        manager.learn(manager.setup_experiment())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == {1}
