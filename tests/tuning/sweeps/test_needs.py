"""What a run is given, and how many fit at once."""

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.sweeps.needs import Need, find_need, room

NODES = [{"CPU": 4.0, "memory": 1e9}]


@pytest.mark.parametrize(
    ("asked", "need"),
    [
        ((None, 0.0, 0, None), Need(1.0, 0.0, 1.0)),
        ((2.0, 0.0, 0, None), Need(2.0, 0.0, 2.0)),
        ((0.5, 0.0, 0, None), Need(0.5, 0.0, 0.5)),
        ((None, 0.0, 2, None), Need(3.0, 0.0, 1.0)),
        ((None, 0.0, 16, None), Need(4.0, 0.0, 1.0)),
        ((None, 0.0, 4, 0.25), Need(2.0, 0.0, 1.0)),
        ((3.0, 0.0, 8, None), Need(3.0, 0.0, 1.0)),
    ],
)
def test_cpus_of_a_run(asked, need):
    assert find_need(*asked, NODES) == need


@pytest.mark.parametrize("asked", [(5.0, 0.0, 0, None), (1.0, 1.0, 0, None), (None, 0.0, 4, 1.0)])
def test_what_no_node_has_is_refused(asked):
    with pytest.raises(ConfigError, match="no node has that much; there are nodes with 4 CPUs and 0 GPUs"):
        find_need(*asked, NODES)


def test_as_many_as_fit(ray_instance):
    assert room([Need(1.0)]) == 4
    assert room([Need(0.5), Need(0.5)]) == 8
    assert room([Need(1.0), Need(3.0)]) == 1
    assert room([Need(100.0)]) == 1
