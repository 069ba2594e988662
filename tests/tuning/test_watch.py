"""What a driver hears of its trials beside their results."""

import time

import pyarrow.fs
import pytest
from ray import tune

from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.watch import StudyEnd, address


class Search:
    closing = False


@pytest.mark.parametrize(
    ("system", "path", "found"),
    [
        (pyarrow.fs.LocalFileSystem(), "/data/trials/x", "/data/trials/x"),
        (pyarrow.fs._MockFileSystem(), "bucket/trials/x", "mock://bucket/trials/x"),
    ],
)
def test_a_checkpoint_s_address_is_good_for_another_driver(system, path, found):
    assert address(tune.Checkpoint(path, filesystem=system)) == found


@pytest.mark.parametrize(("how", "ends"), [("nothing", False), ("signal", True), ("time", True), ("wish", True)])
def test_what_ends_a_study(how, ends):
    search, stop = Search(), SignalStop(StopGuard())
    end = StudyEnd(search, stop, 1e-6 if how == "time" else None)
    time.sleep(0.001)
    if how == "signal":
        stop.signum = 15
    search.closing = how == "wish"
    assert end.stop_all() is ends is search.closing
    assert not end("a", {"done": True})
