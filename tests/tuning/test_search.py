"""StudySearch, as Ray Tune calls it: what is drawn, what results become in the rows, and who may draw how many."""

import math
import pickle
import threading

import optuna
import pytest
from optuna.trial import TrialState
from ray.tune.search import Searcher

from lit_sb3_ray.tuning import drivers
from lit_sb3_ray.tuning.drivers import enter
from lit_sb3_ray.tuning.rows import (
    CHECKPOINT,
    DRIVER,
    FAILURE,
    FOLDER,
    JUMPED,
    PARAMS_AT_END,
    SEED_VALUES,
    SPREAD,
    SURPLUS,
    TIMESTEPS,
    TRACEBACK,
    break_off,
    counts,
    enqueue_continuation,
)
from lit_sb3_ray.tuning.search import StudySearch
from lit_sb3_ray.tuning.storage import open_study
from lit_sb3_ray.tuning.tally import Tally
from lit_sb3_ray.tuning.trainable import CHECKPOINT as ORIGIN
from lit_sb3_ray.tuning.trainable import DRAWN, FINISHED, HYPERPARAMS, MARK, METRIC, NUMBER


def draw(trial):
    return {"learning_rate": trial.suggest_float("x", 0.0, 1.0) / 10}


def new_study():
    return optuna.create_study(direction="maximize")


def search_of(study, total=3, objective="last", draw=draw, lease=None):
    return StudySearch(study, total, draw, objective, lease)


def result(mark, value, finished=False, seeds=(), jumped=(), steps=None):
    values = list(seeds) or [value]
    return {
        METRIC: value,
        MARK: mark,
        "timesteps_total": steps or mark,
        SEED_VALUES: values,
        SPREAD: 0.5,
        JUMPED: list(jumped),
        FINISHED: finished,
        "done": finished,
    }


def failure(reason="ValueError: broken"):
    return {METRIC: math.nan, FAILURE: reason, TRACEBACK: "Traceback ...", "done": True}


def test_a_trial_s_config_says_what_was_drawn_and_what_it_means():
    study = new_study()
    lease = enter(study, "new", "s")
    config = search_of(study, lease=lease).suggest("a")
    (row,) = study.trials
    assert config == {
        NUMBER: 0,
        DRAWN: row.params,
        HYPERPARAMS: {"learning_rate": row.params["x"] / 10},
        ORIGIN: None,
    }
    assert row.state == TrialState.RUNNING
    assert row.user_attrs[DRIVER] == lease.driver.id


def test_no_more_are_drawn_than_asked_for():
    search = search_of(new_study(), total=2)
    assert [search.suggest(name)[NUMBER] for name in "ab"] == [0, 1]
    assert search.suggest("c") == Searcher.FINISHED
    assert len(search.study.trials) == 2


def test_none_is_drawn_while_closing():
    search = search_of(new_study())
    search.closing = True
    assert search.suggest("a") == Searcher.FINISHED


def test_what_waits_goes_first():
    study = new_study()
    study.enqueue_trial({"x": 0.25})
    assert search_of(study).suggest("a")[DRAWN] == {"x": 0.25}


@pytest.mark.parametrize(
    ("objective", "value"),
    [("last", 2.0), ("best", 5.0), ("mean:2", 3.5), ("mean:3", 8 / 3)],
)
def test_a_trial_that_has_its_budget_is_complete_with_its_objective(objective, value):
    search = search_of(new_study(), objective=objective)
    search.suggest("a")
    for mark, mean in ((20, 1.0), (40, 5.0)):
        search.on_trial_result("a", result(mark, mean))
    search.on_trial_complete("a", result(60, 2.0, finished=True, steps=66))
    (row,) = search.study.trials
    assert (row.state, row.value) == (TrialState.COMPLETE, pytest.approx(value))
    assert row.intermediate_values == {20: 1.0, 40: 5.0, 60: 2.0}
    assert row.user_attrs[TIMESTEPS] == 66
    assert search.live == {}


def test_a_trial_that_is_stopped_is_pruned_with_all_it_has_reported():
    """Case B3. Ray's own search calls it complete and loses the result that it was stopped at."""
    search = search_of(new_study())
    search.suggest("a")
    search.on_trial_result("a", result(20, 1.0))
    search.on_trial_complete("a", result(40, 0.5))
    (row,) = search.study.trials
    assert row.state == TrialState.PRUNED
    assert row.intermediate_values == {20: 1.0, 40: 0.5}


def test_a_failure_is_kept_with_its_traceback():
    """Case B2. Ray's own search leaves a trial that has given NaN running for ever."""
    search = search_of(new_study())
    search.suggest("a")
    search.on_trial_result("a", result(20, 1.0))
    search.on_trial_complete("a", failure())
    (row,) = search.study.trials
    assert row.state == TrialState.FAIL
    assert (row.user_attrs[FAILURE], row.user_attrs[TRACEBACK]) == ("ValueError: broken", "Traceback ...")
    assert row.intermediate_values == {20: 1.0}
    assert counts(row)


def test_several_seeds_are_noted_and_a_single_one_is_not():
    search = search_of(new_study())
    for name, seeds in (("a", (1.0, 2.0)), ("b", ())):
        search.suggest(name)
        search.on_trial_complete(name, result(20, 1.5, finished=True, seeds=seeds))
    several, single = search.study.trials
    assert (several.user_attrs[SEED_VALUES], several.user_attrs[SPREAD]) == ([1.0, 2.0], 0.5)
    assert not {SEED_VALUES, SPREAD} & single.user_attrs.keys()


def test_jumped_marks_are_listed():
    search = search_of(new_study())
    search.suggest("a")
    search.on_trial_result("a", result(40, 1.0, jumped=[10, 20, 30]))
    search.on_trial_complete("a", result(60, 1.0, finished=True, jumped=[50]))
    assert search.study.trials[0].user_attrs[JUMPED] == [10, 20, 30, 50]


def test_a_trial_that_comes_by_again_reports_once():
    """After a lost actor it goes back to its checkpoint; that is noted with the mark it was taken at, not the furthest one."""
    search = search_of(new_study())
    search.suggest("a")
    for mark in (20, 40):
        search.on_trial_result("a", result(mark, float(mark)))
    search.on_trial_result("a", result(20, 99.0))
    search.checkpointed("a", "somewhere")
    (row,) = search.study.trials
    assert row.intermediate_values == {20: 20.0, 40: 40.0}
    assert row.user_attrs[CHECKPOINT] == {"path": "somewhere", "mark": 20}


def test_a_lost_trial_ends_when_it_is_known_why():
    search = search_of(new_study())
    search.suggest("a")
    search.on_trial_complete("a", error=True)
    assert search.study.trials[0].state == TrialState.RUNNING
    search.lose("a", "ActorDiedError: gone", "all about it")
    search.lose("a", "again", "")
    (row,) = search.study.trials
    assert (row.state, row.user_attrs[FAILURE]) == (TrialState.FAIL, "ActorDiedError: gone")


def test_what_is_at_work_is_broken_off_at_the_end_and_does_not_count():
    search = search_of(new_study())
    search.suggest("a")
    search.on_trial_complete("a", None)
    search.close()
    (row,) = search.study.trials
    assert row.state == TrialState.FAIL
    assert not counts(row)
    assert search.suggest("b") == Searcher.FINISHED


def test_a_continuation_begins_with_what_its_checkpoint_has_seen(tmp_path):
    study = new_study()
    search = search_of(study)
    search.suggest("a")
    search.locate("a", "folder")
    search.on_trial_result("a", result(20, 1.0))
    search.checkpointed("a", str(tmp_path))
    search.on_trial_result("a", result(40, 2.0))
    search.close()
    enqueue_continuation(study, study.trials[0])
    goes_on = search_of(study)
    config = goes_on.suggest("b")
    assert config[ORIGIN] == str(tmp_path)
    assert config[DRAWN] == study.trials[0].params
    assert study.trials[1].intermediate_values == {20: 1.0}
    assert FOLDER not in study.trials[1].user_attrs
    goes_on.on_trial_complete("b", result(40, 2.5, finished=True))
    assert study.trials[1].intermediate_values == {20: 1.0, 40: 2.5}


@pytest.mark.parametrize("lost", [False, True])
def test_a_member_of_a_population_goes_on_with_what_it_had_at_its_checkpoint(lost, tmp_path):
    """And not with what it had first, which its row still says; without the checkpoint it begins with that."""
    study = new_study()
    study.enqueue_trial({"x": 0.5})
    search = search_of(study)
    search.suggest("a")
    search.on_trial_result("a", result(20, 1.0) | {"config/params/x": 0.5, "config/hyperparams/learning_rate": 0.05})
    search.checkpointed("a", "first")
    assert study.trials[0].user_attrs[CHECKPOINT] == {"path": "first", "mark": 20}
    taken = {"config/params/x": 0.6, "config/hyperparams/learning_rate": 0.06}
    search.on_trial_result("a", result(40, 2.0) | taken)
    search.checkpointed("a", str(tmp_path / "lost" if lost else tmp_path))
    search.on_trial_result("a", result(60, 2.0) | {"config/params/x": 0.7, "config/hyperparams/learning_rate": 0.07})
    for name in "bc":  # Also when it is broken off again before it has come to a checkpoint.
        search.close()
        enqueue_continuation(study, study.trials[-1])
        search = search_of(study)
        config = search.suggest(name)
        assert study.trials[-1].params == {"x": 0.5}
        x, rate = (0.5, 0.05) if lost else (0.6, 0.06)
        assert (config[DRAWN], config[HYPERPARAMS]) == ({"x": x}, {"learning_rate": pytest.approx(rate)})
    search.on_trial_complete("c", result(60, 2.5, finished=True) | taken)
    assert study.trials[-1].user_attrs[PARAMS_AT_END] == {"x": 0.6}


@pytest.mark.parametrize("lost", [False, True])
def test_a_continuation_without_a_checkpoint_begins_anew_and_tells_so(lost, tmp_path, caplog):
    """There was none, or it is no more."""
    caplog.set_level("INFO", logger="lit_sb3_ray")
    study = new_study()
    search = search_of(study)
    search.suggest("a")
    search.on_trial_result("a", result(20, 1.0))
    if lost:
        search.checkpointed("a", str(tmp_path / "lost"))
    search.close()
    enqueue_continuation(study, study.trials[0])
    assert search_of(study).suggest("b")[ORIGIN] is None
    assert study.trials[1].intermediate_values == {}
    told = f"Trial 1 begins anew: its checkpoint {tmp_path / 'lost'}" if lost else "Trial 1 is trial 0 begun anew"
    assert told in caplog.text


def test_a_space_that_raises_fails_its_trial_and_the_next_is_drawn():
    def picky(trial):
        if trial.number == 0:
            raise KeyError("no such thing")
        return draw(trial)

    search = search_of(new_study(), draw=picky)
    assert search.suggest("a")[NUMBER] == 1
    assert search.study.trials[0].user_attrs[FAILURE] == "KeyError: 'no such thing'"


@pytest.mark.parametrize(("worked", "fatal"), [(False, "dqn needs discrete actions"), (True, None)])
def test_wrong_settings_end_the_study_while_nothing_has_worked(worked, fatal):
    search = search_of(new_study())
    if worked:
        search.suggest("a")
        search.on_trial_result("a", result(20, 1.0))
    search.suggest("b")
    search.on_trial_complete("b", failure("ConfigError: dqn needs discrete actions"))
    assert (search.fatal, search.closing) == (fatal, not worked)


def test_another_error_ends_no_study():
    search = search_of(new_study())
    search.suggest("a")
    search.on_trial_complete("a", failure())
    assert (search.fatal, search.closing) == (None, False)


def test_two_searches_that_take_the_last_trial_at_once_keep_one(monkeypatch):
    study = new_study()
    first, second = (search_of(study, 1) for _ in range(2))
    monkeypatch.setattr(Tally, "wants_more", lambda self, total: True)
    assert first.suggest("a")[NUMBER] == 0
    assert second.suggest("b") == Searcher.FINISHED
    assert study.trials[1].user_attrs[SURPLUS]
    assert sum(map(counts, study.trials)) == 1


def test_many_searches_on_one_storage_share_the_total_exactly(tmp_path):
    total, drivers = 12, 4

    def work():
        search = search_of(open_study(str(tmp_path / "study.log"), "s"), total)
        while search.suggest("a") != Searcher.FINISHED:
            search.on_trial_complete("a", result(20, 1.0, finished=True))

    open_study(str(tmp_path / "study.log"), "s")
    threads = [threading.Thread(target=work) for _ in range(drivers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = open_study(str(tmp_path / "study.log"), "s").trials
    assert sum(map(counts, rows)) == sum(row.state == TrialState.COMPLETE for row in rows) == total
    assert all(SURPLUS in row.user_attrs for row in rows if row.state == TrialState.FAIL)


@pytest.mark.parametrize("event", ["suggest", "result", "complete", "lose", "locate", "checkpoint", "close"])
def test_a_driver_that_was_silent_for_too_long_leaves_its_rows_to_its_successor(event, monkeypatch, caplog):
    """Its process was stopped for a while; meanwhile `--resume` has taken its trials over. It wakes up with any event."""
    study = new_study()
    silent = enter(study, "new", "s")
    search = search_of(study, lease=silent)
    search.suggest("a")
    search.on_trial_result("a", result(20, 1.0))
    monkeypatch.setattr(drivers, "LEASE_S", -1.0)
    successor = enter(study, "resume", "s")
    break_off(study, study.trials[0])
    enqueue_continuation(study, study.trials[0])
    before = [(row.state, row.user_attrs) for row in study.trials]
    happens = {
        "suggest": lambda: search.suggest("b"),
        "result": lambda: search.on_trial_result("a", result(40, 2.0)),
        "complete": lambda: search.on_trial_complete("a", result(100, 2.0, finished=True)),
        "lose": lambda: search.lose("a", "ActorDiedError: gone", "..."),
        "locate": lambda: search.locate("a", "somewhere"),
        "checkpoint": lambda: search.checkpointed("a", "somewhere"),
        "close": search.close,
    }
    for _ in range(2):
        assert happens[event]() in (None, Searcher.FINISHED)
    assert search.closing
    assert [(row.state, row.user_attrs) for row in study.trials] == before
    assert caplog.text.count("has taken the study over: it ends") == 1
    entry = drivers.drivers_of(study)[0]
    silent.renew()
    assert drivers.drivers_of(study)[0] == entry
    assert successor.successor() is None


def test_the_storage_is_the_only_state(tmp_path):
    search = search_of(new_study())
    search.suggest("a")
    search.save(str(tmp_path / "state"))
    search.restore(str(tmp_path / "state"))
    assert "Optuna's storage" in (tmp_path / "state").read_text()
    assert pickle.loads(pickle.dumps(search)).__dict__ == {}
