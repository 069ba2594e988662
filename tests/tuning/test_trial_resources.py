"""What a trial asks Ray for."""

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.study_options import StudyOptions
from lit_sb3_ray.tuning.trial_resources import trial_request, trials_at_once

SMALL, LARGE = [{"CPU": 4.0}, {"CPU": 4.0}], [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 16.0}]


@pytest.mark.parametrize(
    ("placement", "nodes", "strategy", "bundles"),
    [
        (None, LARGE, "STRICT_PACK", [{"CPU": 1.0}, {"CPU": 6.0}]),
        (None, SMALL, "PACK", [{"CPU": 1.0}, *[{"CPU": 2.0}] * 3]),
        ("strict-pack", SMALL, "STRICT_PACK", [{"CPU": 1.0}, {"CPU": 6.0}]),
        ("pack", LARGE, "PACK", [{"CPU": 1.0}, *[{"CPU": 2.0}] * 3]),
        ("spread", LARGE, "SPREAD", [{"CPU": 1.0}, *[{"CPU": 2.0}] * 3]),
    ],
)
def test_env_actors_on_one_node_share_a_bundle_and_on_several_have_one_each(placement, nodes, strategy, bundles):
    request = trial_request(StudyOptions(), 6.0, 3, placement, nodes)
    assert (request.strategy, request.bundles) == (strategy, bundles)


def test_gpus_are_the_learner_s_alone():
    request = trial_request(StudyOptions(gpus_per_trial=0.5), 2.0, 2, None, LARGE)
    assert request.bundles == [{"CPU": 1.0, "GPU": 0.5}, {"CPU": 2.0}]
    assert trials_at_once(request, None, LARGE) == 4


def test_more_than_one_gpu_would_be_idle():
    with pytest.raises(ConfigError, match="--gpus-per-trial 2: a trial trains on one GPU"):
        StudyOptions(gpus_per_trial=2.0)


@pytest.mark.parametrize(("placement", "count"), [(None, 1), ("pack", 1), ("spread", 1)])
def test_trials_over_several_nodes_are_counted_bundle_by_bundle(placement, count):
    request = trial_request(StudyOptions(), 6.0, 3, placement, SMALL)
    assert trials_at_once(request, None, SMALL) == count


def test_what_fits_nowhere_is_refused_with_the_numbers():
    request = trial_request(StudyOptions(), 6.0, 3, "strict-pack", SMALL)
    with pytest.raises(ConfigError, match="a trial needs 7 CPU, and no node of Ray has more than 4 CPU"):
        trials_at_once(request, None, SMALL)
    request = trial_request(StudyOptions(), 9.0, 3, None, SMALL)
    with pytest.raises(ConfigError, match="a trial needs 10 CPU, and all of Ray's nodes have 8 CPU"):
        trials_at_once(request, None, SMALL)
    assert trials_at_once(request, None, SMALL, may_grow=True) == 1


@pytest.mark.parametrize(
    ("n_jobs", "may_grow", "count"),
    [(None, False, 8), (3, False, 3), (50, False, 8), (None, True, 9), (3, True, 3), (50, True, 50)],
)
def test_no_more_are_drawn_than_run_unless_nodes_may_be_added(n_jobs, may_grow, count):
    """Nodes are added for what waits: one more than fits where nobody says how many, so that a small cluster grows."""
    request = trial_request(StudyOptions(), 0.0, 0, None, SMALL)
    assert trials_at_once(request, n_jobs, SMALL, may_grow) == count
