"""Several learners of one model: their gradients, weights and statistics stay one, and none waits for one that has left."""

import numpy as np
import pytest
import torch
from learners import Case, run
from stable_baselines3.common.running_mean_std import RunningMeanStd

from lit_sb3_ray.lit.merging import Merger

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


def test_statistics_of_several_are_those_of_one_that_has_seen_all():
    rng = np.random.default_rng(0)
    data = rng.normal(50.0, 3.0, (4, 30, 5))
    one, many = RunningMeanStd(shape=(5,)), [RunningMeanStd(shape=(5,)) for _ in range(3)]
    merger = [Merger({"obs_rms": rms}) for rms in many]
    for part in data:
        one.update(part)
        for rms, own in zip(many, np.split(part, 3), strict=True):
            rms.update(own)
        sums = sum(m.told({"obs_rms": rms}) for m, rms in zip(merger, many, strict=True))
        for m, rms in zip(merger, many, strict=True):
            m.merge({"obs_rms": rms}, sums)
    for rms in many:
        assert np.allclose(rms.mean, one.mean, rtol=1e-12)
        assert np.allclose(rms.var, one.var, rtol=1e-9)
        assert rms.count == pytest.approx(one.count)
        assert np.array_equal(rms.mean, many[0].mean)
        assert np.array_equal(rms.var, many[0].var)


def test_gradients_are_the_mean_of_the_halves():
    first, second = run(Case("A2C", steps=0))
    assert np.array_equal(first["averaged"], second["averaged"])
    assert not np.allclose(first["own"], second["own"])
    mean = (torch.from_numpy(first["own"]) + torch.from_numpy(second["own"])) / 2
    assert torch.allclose(torch.from_numpy(first["averaged"]), mean, rtol=1e-6, atol=1e-9)
    # Outside of an update, and without the hooks, a pass is each learner's own.
    assert np.array_equal(first["alone"], first["own"])
