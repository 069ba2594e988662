"""What a driver hears of its trials beside their results."""

import time
from types import SimpleNamespace

import pytest
from pyarrow.fs import LocalFileSystem
from ray import tune

from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.watch import StudyEnd, Watch, _reason, address


class Search:
    closing = False


@pytest.mark.parametrize(
    ("home", "root", "path", "found"),
    [
        ("", "/data", "/data/trials/x", "/data/trials/x"),
        ("/data", "/data", "/data/s/x", "/data/s/x"),
        ("file:///data", "/data", "/data/s/x", "file:///data/s/x"),
        ("s3://bucket/a/", "bucket/a", "bucket/a/s/x", "s3://bucket/a/s/x"),
        ("s3://bucket/a?region=eu-west-1", "bucket/a", "bucket/a/s/x", "s3://bucket/a/s/x?region=eu-west-1"),
        ("hdfs://name:8020/a", "/a", "/a/s/x", "hdfs://name:8020/a/s/x"),
    ],
)
def test_the_address_of_what_a_trial_keeps_is_good_for_another_driver(home, root, path, found):
    trial = SimpleNamespace(storage=SimpleNamespace(storage_fs_path=root))
    assert address(path, trial, home) == found


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


@pytest.mark.parametrize("there", [True, False])
def test_a_checkpoint_that_cannot_be_removed_ends_no_study(there, tmp_path, caplog):
    """As in a shared folder in which somebody still has a file open."""
    folder = tmp_path / "checkpoint"
    if there:
        folder.mkdir()
    checkpoint = SimpleNamespace(filesystem=LocalFileSystem(), path=str(folder))
    trial = SimpleNamespace(checkpoint=checkpoint, config={"trial": 3})
    Watch(Search(), None, None, None).on_trial_complete(1, [], trial)
    assert not folder.exists()
    assert ("Trial 3 is over, and its checkpoint stays: " in caplog.text) is not there


class Unable(tune.Trainable):
    """A trial whose process cannot even begin."""

    def setup(self, config):
        raise ModuleNotFoundError("No module named 'my_envs'")


class Reasons(tune.Callback):
    def __init__(self):
        self.told = []

    def on_trial_recover(self, iteration, trials, trial, **info):
        self.told.append(("goes on", *_reason(trial)))

    def on_trial_error(self, iteration, trials, trial, **info):
        self.told.append(("failed", *_reason(trial)))


def test_a_process_that_cannot_begin_is_told_with_its_own_reason(ray_instance, tmp_path):
    reasons = Reasons()
    tune.Tuner(
        Unable,
        run_config=tune.RunConfig(
            storage_path=str(tmp_path),
            callbacks=[reasons],
            failure_config=tune.FailureConfig(max_failures=1),
            verbose=0,
        ),
    ).fit()
    assert [(what, reason) for what, reason, _ in reasons.told] == [
        (what, "ActorDiedError: ModuleNotFoundError: No module named 'my_envs'") for what in ("goes on", "failed")
    ]
    assert all("in setup" in text for _, _, text in reasons.told)
