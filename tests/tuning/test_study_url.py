"""A study whose trials are kept in an object store."""

from __future__ import annotations

import pytest
from ray import tune
from s3_server import s3_server
from studies import POINT, enqueue, plan, rows_of, study_of

from lit_sb3_ray.tuning.rows import CHECKPOINT, FOLDER


@pytest.fixture
def bucket():
    with s3_server() as (server, options):
        yield server.objects, f"s3://key:secret@bucket/studies?{options}"


@pytest.mark.slow
@pytest.mark.usefixtures("ray_instance")
def test_a_lost_trial_goes_on_from_the_checkpoint_in_the_object_store(tmp_path, bucket):
    """Its evaluations are those of the other trial, which has the same parameters and was left in peace."""
    objects, url = bucket
    trouble = {"role": "train", "when": "step", "at": 30, "what": "kill"}
    where = enqueue(tmp_path, POINT, POINT)
    options = {"checkpoint_every": 0.0, "storage_path": url}
    result = study_of(tmp_path, options=options, **where, **plan(tmp_path, trouble)).hyperparameters_optimization()
    first, second = rows_of(tmp_path)
    assert [row.state.name for row in (first, second)] == ["COMPLETE"] * 2
    assert (tmp_path / "met.txt").read_text().count("kill") == 1
    assert first.intermediate_values == second.intermediate_values
    head, _, tail = url.partition("?")
    for row in (first, second):
        for kept in (row.user_attrs[FOLDER], row.user_attrs[CHECKPOINT]["path"]):
            assert kept.startswith(f"{head}/s/trial_0000{row.number}")
            assert kept.endswith(tail)
    # Where another driver would find it, had the trial not ended.
    gone = tune.Checkpoint(first.user_attrs[CHECKPOINT]["path"])
    assert gone.filesystem.type_name == "s3"
    names = sorted(objects)
    assert not [name for name in names if name.endswith("model.zip")]
    assert {"bucket/studies/s/study/study.yml", "bucket/studies/s/study/best.yml"} <= set(names)
    assert not [path for path in result.folder.rglob("*") if "trial_" in path.name and path.parent.name == "trials"]
