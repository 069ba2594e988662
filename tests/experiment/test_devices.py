"""Each of several learners has a device of its own."""

from __future__ import annotations

import pytest
from learner_runs import manager

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.devices import divide_gpus
from lit_sb3_ray.experiment.learner import Seat
from lit_sb3_ray.vec.actor import Home


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize(
    ("device", "told"),
    [("cuda:1", "each learner has its own|cuda"), ("cuda", "each learner needs a GPU of its own|cuda")],
)
def test_devices_that_are_not_there_are_refused(device, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        manager(tmp_path / "logs", device=device).setup_experiment()


def seat(node, *gpus):
    return Seat(Home(node, 1, 2), "127.0.0.1", gpus)


def test_each_learner_has_a_gpu_of_its_own():
    assert divide_gpus([seat("here", "1"), seat("here", "2")], "here", ["0", "1", "2"]) == ["1", "2"]
    # Ray has given away the one that the first learner is on.
    assert divide_gpus([seat("here", "0"), seat("there", "0")], "here", ["0", "1"]) == ["1", "0"]
    # A job that was given one sees that one alone.
    assert divide_gpus([seat("here", "0")], "here", ["3"]) == ["0"]
    with pytest.raises(ConfigError, match="no GPU left"):
        divide_gpus([seat("here", "0"), seat("here", "1")], "here", ["0", "1"])
