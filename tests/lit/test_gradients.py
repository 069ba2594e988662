"""Gradients of several learners are averaged in an update, and there alone."""

import numpy as np
import torch
from learners import Case, run


def test_gradients_are_the_mean_of_the_halves():
    first, second = run(Case("A2C", steps=0))
    assert np.array_equal(first["averaged"], second["averaged"])
    assert not np.allclose(first["own"], second["own"])
    mean = (torch.from_numpy(first["own"]) + torch.from_numpy(second["own"])) / 2
    assert torch.allclose(torch.from_numpy(first["averaged"]), mean, rtol=1e-6, atol=1e-9)
    # Outside of an update, and without the hooks, a pass is each learner's own.
    assert np.array_equal(first["alone"], first["own"])
