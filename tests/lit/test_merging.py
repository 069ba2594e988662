"""Running statistics of several learners are those of all they have seen."""

import numpy as np
import pytest
from stable_baselines3.common.running_mean_std import RunningMeanStd

from lit_sb3_ray.lit.merging import Merger


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
