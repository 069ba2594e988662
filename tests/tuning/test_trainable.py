"""ExperimentTrial as Ray Tune calls it, without Ray: results, failures, checkpoints, warm starts of the next trial."""

import math
import os

import pytest
from studies import plan, study_of

from lit_sb3_ray.tuning.rows import FAILURE, JUMPED, SEED_VALUES, SPREAD, TRACEBACK
from lit_sb3_ray.tuning.trainable import (
    CHECKPOINT,
    DRAWN,
    FINISHED,
    HYPERPARAMS,
    MARK,
    METRIC,
    NUMBER,
    ExperimentTrial,
    TrialPlan,
)
from lit_sb3_ray.tuning.trial_maker import TrialMaker

MARKS = (20, 40, 60)


@pytest.fixture
def trial_of(tmp_path):
    """Makes trials of one study; they are cleaned up at the end."""
    trials = []

    def make(config=None, seeds=(1,), marks=MARKS, checkpoint_every=0.0, **settings):
        manager = study_of(tmp_path, n_timesteps=marks[-1], **settings)
        made = TrialPlan(TrialMaker.of(manager), marks, seeds, checkpoint_every, output=str(tmp_path / "output"))

        class Trial(ExperimentTrial):
            def setup(self, config):
                super().setup(config, made)

        trials.append(Trial(config or config_of()))
        return trials[-1]

    yield make
    for trial in trials:
        trial.stop()


def config_of(number=0, checkpoint=None, **hyperparams):
    return {NUMBER: number, DRAWN: {}, HYPERPARAMS: {"max_grad_norm": 1.0, **hyperparams}, CHECKPOINT: checkpoint}


def test_a_step_is_an_evaluation_and_the_last_one_says_so(trial_of):
    trial = trial_of()
    results = [trial.train() for _ in MARKS]
    assert [result[MARK] for result in results] == [result["timesteps_total"] for result in results] == [20, 40, 60]
    assert [result[FINISHED] for result in results] == [result["done"] for result in results] == [False, False, True]
    assert [result["should_checkpoint"] for result in results] == [True, True, False]
    assert all(result[SPREAD] == 0.0 and result[SEED_VALUES] == [result[METRIC]] for result in results)
    assert all(math.isfinite(result[METRIC]) and result["steps_per_second"] > 0 for result in results)


def test_checkpoints_are_wanted_only_so_often(trial_of):
    trial = trial_of(checkpoint_every=1000.0)
    assert not trial.train()["should_checkpoint"]


def test_a_long_rollout_reports_at_its_true_step_and_tells_what_it_jumped(trial_of):
    trial = trial_of(marks=(10, 20, 30, 40), hyperparams={"n_steps": 25, "callback": "study_envs.Worth"})
    results = [trial.train() for _ in range(2)]
    assert [(result[MARK], result["timesteps_total"], result[JUMPED]) for result in results] == [
        (20, 25, [10]),
        (40, 50, [30]),
    ]


def test_a_failure_is_a_result(trial_of, tmp_path):
    """Case B2: it ends the trial, with the reason, and no time for a scheduler to judge it by."""
    trial = trial_of(**plan(tmp_path, {"role": "train", "when": "step", "at": 30, "what": "error"}))
    trial.train()
    result = trial.train()
    assert result["done"]
    assert math.isnan(result[METRIC])
    assert result[FAILURE] == "ValueError: the joint is broken"
    assert "study_envs.py" in result[TRACEBACK]
    assert not {MARK, FINISHED} & result.keys()


def test_the_next_trial_begins_in_the_same_process(trial_of):
    trial = trial_of()
    first = [trial.train()[METRIC] for _ in MARKS]
    assert trial.reset(config_of(1))
    assert [trial.train()[METRIC] for _ in MARKS] == first
    assert trial.reset(config_of(2, max_grad_norm=2.0))
    assert trial.train()[METRIC] > first[0]


def test_the_next_trial_begins_after_a_failure(trial_of, tmp_path):
    trial = trial_of(**plan(tmp_path, {"role": "train", "when": "step", "at": 3, "what": "error"}))
    assert FAILURE in trial.train()
    assert trial.reset(config_of(1))
    assert trial.train()[MARK] == 20


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_a_checkpoint_has_each_seed_s_experiment(trial_of, tmp_path, seeds):
    """Whether Tune restores a lost trial, or another row begins with the checkpoint: it goes on as if nothing had happened."""
    whole = trial_of(seeds=seeds)
    expected = [whole.train() for _ in MARKS]
    first = trial_of(seeds=seeds)
    first.train()
    first.save(str(tmp_path / "checkpoint"))
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir() if path.is_dir()) == [
        str(i) for i, _ in enumerate(seeds)
    ]
    for origin in (str(tmp_path / "checkpoint"), None):
        trial = trial_of(config_of(1, origin), seeds=seeds)
        if origin is None:
            trial.load_checkpoint(str(tmp_path / "checkpoint"))
        results = [trial.train() for _ in MARKS[1:]]
        assert [result[SEED_VALUES] for result in results] == [result[SEED_VALUES] for result in expected[1:]]
        assert [result[JUMPED] for result in results] == [[], []]


def test_each_of_several_seeds_trains_as_it_does_alone(trial_of):
    one, two, both = (trial_of(seeds=seeds) for seeds in ((1,), (2,), (1, 2)))
    alone = zip([one.train()[METRIC] for _ in MARKS], [two.train()[METRIC] for _ in MARKS], strict=True)
    assert [both.train()[SEED_VALUES] for _ in MARKS] == [list(pair) for pair in alone]


def test_a_seed_that_a_callback_has_ended_does_not_hold_up_the_others(trial_of):
    """It keeps its last value, and is not evaluated again; the trial's evaluations are those of the seed that goes on."""
    both = trial_of(seeds=(1, 2), hyperparams={"n_steps": 20, "callback": "study_envs.EndsSeedOne"})
    results = [both.train() for _ in MARKS]
    assert [result[MARK] for result in results] == [result["timesteps_total"] for result in results] == [20, 40, 60]
    assert [result[FINISHED] for result in results] == [False, False, True]
    assert results[1][SEED_VALUES][0] == results[2][SEED_VALUES][0]
    assert results[1][SEED_VALUES][1] != results[2][SEED_VALUES][1]


def test_a_checkpoint_that_is_gone_fails_the_trial_with_its_reason(trial_of, tmp_path):
    trial = trial_of(config_of(0, str(tmp_path / "nowhere")))
    assert "nowhere" in trial.train()[FAILURE]


def test_each_trial_writes_into_a_file_of_its_own_and_output_is_given_back(trial_of, tmp_path, capfd):
    trial = trial_of()
    os.write(1, b"of the first\n")
    trial.reset(config_of(1))
    os.write(2, b"of the second\n")
    trial.stop()
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"
    texts = [(tmp_path / "output" / f"trial_{number:05d}" / "output.log").read_text() for number in range(2)]
    assert texts == ["of the first\n", "of the second\n"]
