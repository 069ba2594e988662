"""Several learners of one model: their gradients, weights and statistics stay one, and none waits for one that has left."""

import subprocess
import sys

import numpy as np
import pytest
from learners import Case, run

PPO = Case("PPO", steps=512, options=(("n_steps", 32), ("batch_size", 16), ("n_epochs", 2)))


def assert_alike(results, *names):
    for name in names or ("weights", "loose", "statistics", "steps", "updates", "iteration"):
        for other in results[1:]:
            assert_equal(results[0][name], other[name], name)


def assert_equal(one, other, where):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other), where
    else:
        assert one == other, where


@pytest.mark.parametrize("size", [2, 3])
def test_learners_stay_alike_bit_for_bit_with_normalisation_and_a_limit_to_the_change(size):
    options = (*PPO.options, ("target_kl", 0.0005), ("learning_rate", 0.01))
    case = Case("PPO", steps=64 * size * 4, options=options, normalize=True)
    results = run(case, size)
    assert_alike(results)
    assert [result["steps"] for result in results] == [64 * size * 4] * size
    assert all(result["target_kl"] == 0.0005 for result in results)
    # Each explores in its own way.
    assert results[0]["draws"] != results[1]["draws"]
    # Counted over all learners: resets of all envs, and their steps.
    assert results[0]["statistics"]["obs_rms"]["count"] == pytest.approx(1e-4 + 64 * size * 4 + 2 * size)


@pytest.mark.parametrize(
    "case",
    [
        Case("A2C", steps=200),
        Case("RecurrentPPO", steps=256, options=(("n_steps", 32), ("batch_size", 32)), policy="MlpLstmPolicy"),
        Case("MaskablePPO", "TinyMasked-v0", steps=256, options=(("n_steps", 32), ("batch_size", 16))),
        Case("DQN", steps=300, options=(("learning_starts", 50), ("target_update_interval", 40), ("train_freq", 4))),
        Case("QRDQN", steps=200, options=(("learning_starts", 50),)),
        Case("SAC", "TinyCount-v0", steps=160, options=(("learning_starts", 40), ("gradient_steps", -1)), normalize=True),
        Case("TD3", "TinyCount-v0", steps=120, options=(("learning_starts", 40),)),
        Case("TQC", "TinyCount-v0", steps=100, options=(("learning_starts", 40),)),
    ],
    ids=lambda case: case.algo,
)
def test_every_algorithm_stays_alike(case):
    results = run(case)
    assert_alike(results)
    assert results[0]["updates"] > 0
    if results[0]["buffer"] is not None:
        # A buffer each, of what each has seen, and a checkpoint has the others'.
        assert results[0]["buffer"] != results[1]["buffer"]
        assert [name for name, _ in results[0]["files"]] == ["learner_1.pkl", "replay_buffer_1.pkl"]
        assert all(size > 0 for _, size in results[0]["files"])


def test_episodes_of_all_learners_reach_the_first():
    first, second = run(PPO)
    assert first["recorded"]
    assert {index for index, _ in first["recorded"]} <= {2, 3}
    assert set(second["episodes"]) <= set(first["episodes"])
    assert second["recorded"] == []


def test_a_callback_of_one_learner_ends_the_training_of_all_at_the_same_boundary():
    case = Case("PPO", steps=10_000, options=PPO.options, stop_at=300, normalize=True)
    results = run(case)
    assert_alike(results, "weights", "statistics", "updates", "iteration")
    assert results[0]["iteration"] == 2


def test_an_iteration_that_is_given_up_leaves_all_at_the_boundary_before_it():
    case = Case("PPO", steps=10_000, options=PPO.options, cut_at=300, normalize=True)
    results = run(case)
    assert_alike(results)
    assert results[0]["iteration"] <= 2
    assert results[0]["steps"] == 128 * results[0]["iteration"]
    assert results[0]["files"][0][1] > 0


def test_a_learner_that_is_killed_ends_the_others_with_an_error():
    results = run(Case("PPO", steps=10_000, options=PPO.options, killed_at=300), 3)
    assert results[2] == {"died": True}
    assert all("another learner is gone" in result["error"] for result in results[:2])


ALONE = """
import sys
from contextlib import nullcontext
from stable_baselines3 import PPO
from lit_sb3_ray import RLModule, RLTrainer

model = PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16, n_epochs=1, device="cpu")
module = RLModule(model)
RLTrainer(max_steps=32).fit(module)
session = module.session
assert module.parallel is None
assert (session.agree, session.learners, session.autocast) == (bool, 1, nullcontext)
assert not any(weight._post_accumulate_grad_hooks for weight in model.policy.parameters())
parts = ("data_parallel", "joint_iteration", "gradients", "exchange", "meeting")
assert not [part for part in parts if f"lit_sb3_ray.lit.{part}" in sys.modules]
"""


def test_a_learner_alone_pays_for_nothing_of_this():
    """No hook hangs on a weight, nothing is agreed on, and what learners exchange is not even loaded."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
