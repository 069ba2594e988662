"""Schedulers by name: Ray's decisions at a study's marks, and the same decisions after a resume."""

import math
import random
from collections import Counter
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.rows import CONTINUES
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.schedule.schedulers import SCHEDULERS, build_scheduler, original_number, recorded_rows, restore_rungs

MARKS = evaluation_marks(20_000, 10, "asha")
CONTINUE, STOP = TrialScheduler.CONTINUE, TrialScheduler.STOP
NAMES = [name for name in SCHEDULERS if name != "pbt"]


class Driver:
    """Does with a scheduler what Tune does, for trials that are known by their numbers."""

    def __init__(self, scheduler, generation=0):
        self.scheduler, self.generation = scheduler, generation
        waiting = SimpleNamespace(status="PENDING")
        self.controller = SimpleNamespace(get_live_trials=lambda: [waiting])
        assert scheduler.set_search_properties("mean_reward", "max")

    def trial(self, number):
        return SimpleNamespace(trial_id=f"tune-{self.generation}-{number}", config={"trial": number})

    def add(self, number):
        self.scheduler.on_trial_add(self.controller, self.trial(number))

    def report(self, number, steps, value, done=False):
        """What is decided; None for a trial that has ended by itself."""
        result = {"timesteps_total": steps, "mean_reward": value}
        action = None if done else self.scheduler.on_trial_result(self.controller, self.trial(number), result)
        if action != CONTINUE:
            self.scheduler.on_trial_complete(self.controller, self.trial(number), result)
        return action


def number_of(trial):
    return trial.config["trial"]


def build(name, seed=0, n_startup_trials=3, marks=MARKS):
    return build_scheduler(name, marks, seed, n_startup_trials, number_of)


def past(mark, rollout):
    """Env steps of the first rollout that reaches a mark."""
    return math.ceil(mark / rollout) * rollout


def interleaved(driver, seed, rollouts=(32, 700, 2048, 4096, 9000), trials=40, at_once=6, done_at=None):
    """Runs trials of different quality and rollout; returns what happened, in order."""
    draw = random.Random(seed)
    events, live, begun = [], {}, 0
    while begun < trials or live:
        if begun < trials and len(live) < at_once:
            driver.add(begun)
            events.append(("add", begun))
            live[begun] = {"steps": 0, "quality": draw.gauss(0, 2), "rollout": draw.choice(rollouts)}
            begun += 1
            continue
        number = draw.choice(list(live))
        trial = live[number]
        due = next(mark for mark in MARKS if mark > trial["steps"])
        trial["steps"] = past(due, trial["rollout"])
        value = trial["quality"] * math.log(trial["steps"]) + draw.gauss(0, 1)
        done = trial["steps"] >= MARKS[-1]
        action = driver.report(number, trial["steps"], value, done)
        events.append(("report", number, trial["steps"], value, done, action))
        if action != CONTINUE:
            del live[number]
    return events


@pytest.mark.parametrize("name", ["asha", "hyperband", "median"])
@pytest.mark.parametrize("seed", range(3))
def test_decisions_after_a_resume_are_those_of_an_unbroken_study(name, seed):
    events = interleaved(Driver(build(name)), seed)
    actions = Counter(event[-1] for event in events if event[0] == "report")
    assert actions[STOP] > 5
    assert actions[None] > 2
    for cut in random.Random(seed).sample(range(len(events)), 20):
        before, after = events[:cut], events[cut:]
        begun = [event[1] for event in before if event[0] == "add"]
        reports = {number: [event[2:4] for event in before if event[0] == "report" and event[1] == number] for number in begun}
        ended = {event[1] for event in before if event[0] == "report" and event[-1] != CONTINUE}
        resumed = Driver(build(name), generation=1)
        restore_rungs(resumed.scheduler, reports.items())
        restore_rungs(resumed.scheduler, reports.items())  # Again, as a driver does that works on a study with others.
        for number in begun:
            if number in ended:
                continue
            resumed.add(number)
            if reports[number]:  # Its checkpoint may be older than its last report.
                assert resumed.report(number, *reports[number][-1]) == CONTINUE
        for kind, number, *rest in after:
            if kind == "add":
                resumed.add(number)
            else:
                steps, value, done, action = rest
                assert resumed.report(number, steps, value, done) == action


def test_at_the_marks_asha_decides_as_rays_own():
    own = Driver(build("asha"))
    rays = Driver(AsyncHyperBandScheduler("timesteps_total", max_t=20_000, grace_period=2000, reduction_factor=4))
    events = interleaved(own, 7, rollouts=(1000,))
    for kind, number, *rest in events:
        if kind == "add":
            rays.add(number)
        else:
            steps, value, done, action = rest
            assert rays.report(number, steps, value, done) == action
    assert sum(event[-1] == STOP for event in events) > 10


def test_rollouts_that_end_past_the_marks_are_compared_at_the_same_rungs():
    driver = Driver(build("asha"))
    for number, rollout in enumerate((1000, 2048, 32, 1999)):
        driver.add(number)
        for mark in MARKS[:4]:
            assert driver.report(number, past(mark, rollout), 10.0 + number) == CONTINUE
    assert "Iter 8000.000: 12.25 | Iter 2000.000: 12.25" in driver.scheduler.debug_string()
    driver.add(9)
    assert driver.report(9, 2048, 1.0) == STOP
    assert driver.scheduler.rungs(9) == (2000, 8000)


def test_a_jumped_rung_is_neither_compared_nor_remembered():
    driver = Driver(build("asha"))
    rays = Driver(AsyncHyperBandScheduler("timesteps_total", max_t=20_000, grace_period=2000, reduction_factor=4))
    for each in (driver, rays):
        for number in range(4):
            each.add(number)
            assert each.report(number, 2000, 5.0 + number) == CONTINUE
        each.add(7)
        assert each.report(7, 9000, 6.0) == CONTINUE
    assert driver.report(7, 12_000, 6.0) == CONTINUE
    assert rays.report(7, 12_000, 6.0) == STOP  # For what the others were after a sixth of the env steps.
    assert "Iter 8000.000: 6.0 | Iter 2000.000: 7.25" in driver.scheduler.debug_string()


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_budget_is_never_cut(name):
    driver = Driver(build(name, n_startup_trials=0))
    for number in range(12):
        driver.add(number)
        for mark in MARKS[:-1]:
            driver.report(number, mark, 100.0)
        assert driver.report(number, MARKS[-1], 100.0, done=True) is None
    driver.add(99)
    # Tune asks of its own accord only when the trial does not say that it is done; then it ends, with all it was to do.
    assert driver.report(99, 20_480, -100.0) == STOP


@pytest.mark.parametrize("name", ["none", "nop"])
def test_nothing_is_cut_by_none(name):
    driver = Driver(build(name))
    events = interleaved(driver, 0)
    assert {event[-1] for event in events if event[0] == "report"} == {CONTINUE, None}


@pytest.mark.parametrize("name", ["halving", "successive_halving"])
def test_other_names_of_asha(name):
    assert interleaved(Driver(build(name)), 3) == interleaved(Driver(build("asha")), 3)


def test_the_median_waits_for_its_trials_and_spares_a_third_of_the_budget():
    driver = Driver(build("median", n_startup_trials=3))
    for number in range(3):
        driver.add(number)
        for mark in MARKS:
            assert driver.report(number, mark, 10.0 - number, mark == MARKS[-1]) in (CONTINUE, None)
    driver.add(3)
    assert [driver.report(3, mark, 1.0) for mark in MARKS[:3]] == [CONTINUE, CONTINUE, STOP]
    driver.add(4)
    assert {driver.report(4, mark, 9.5) for mark in MARKS[:-1]} == {CONTINUE}


def test_hyperbands_brackets_depend_on_the_number_and_the_seed_alone():
    def brackets(seed):
        scheduler = build("hyperband", seed)
        return [scheduler.rungs(number) for number in range(17)]

    np.random.seed(1)
    first = brackets(5)
    np.random.seed(2)
    assert brackets(5) == first
    assert brackets(6) != first
    assert Counter(first) == {(2000, 6000, 18_000): 9, (6000, 18_000): 5, (18_000,): 3}  # As the paper has it.
    decided = []
    for seed in (1, 2):
        np.random.seed(seed)
        decided.append(interleaved(Driver(build("hyperband")), 4))
    assert decided[0] == decided[1]


def test_a_trial_whose_actor_was_lost_keeps_its_bracket_and_is_not_judged_twice():
    driver = Driver(build("asha"))
    for number in range(3):
        driver.add(number)
        assert driver.report(number, 2000, 1.0 + number) == CONTINUE
    driver.scheduler.on_trial_error(driver.controller, driver.trial(0))
    driver.add(0)
    before = driver.scheduler.debug_string()
    assert driver.report(0, 2000, -50.0) == CONTINUE
    assert driver.scheduler.debug_string() == before
    assert driver.report(0, 8000, 0.0) == CONTINUE  # The first to come so far.


def test_a_failed_trial_leaves_no_mark():
    driver = Driver(build("asha"))
    driver.add(0)
    driver.scheduler.on_trial_complete(driver.controller, driver.trial(0), {"mean_reward": math.nan})
    driver.add(1)
    assert driver.report(1, 2000, math.nan) == CONTINUE
    assert driver.report(1, 2000, math.nan, done=True) is None
    driver.add(2)
    driver.scheduler.on_trial_remove(driver.controller, driver.trial(2))
    assert "Iter 8000.000: None | Iter 2000.000: None" in driver.scheduler.debug_string()


def test_a_result_without_its_time_is_an_error():
    """Case B21."""
    driver = Driver(build("asha"))
    driver.add(0)
    with pytest.raises(KeyError, match="timesteps_total"):
        driver.scheduler.on_trial_result(driver.controller, driver.trial(0), {"mean_reward": 1.0})


def test_only_more_is_better():
    assert not build("asha").set_search_properties("mean_reward", "min")


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown scheduler 'medain': did you mean 'median'"):
        build("medain")
    with pytest.raises(ValueError, match="build_pbt"):
        build("pbt")


def test_rows_of_one_trial_are_one():
    study = optuna.create_study(direction="maximize")
    for number, (continues, values) in enumerate(
        [(None, {2000: 1.0, 4000: 2.0}), (None, {2000: 5.0}), (0, {2000: 1.0}), (2, {})]
    ):
        trial = study.ask()
        if continues is not None:
            trial.set_user_attr(CONTINUES, continues)
        for steps, value in values.items():
            trial.report(value, steps)
        assert trial.number == number
    rows = study.get_trials()
    assert recorded_rows(rows) == [(0, [(2000, 1.0), (4000, 2.0)]), (1, [(2000, 5.0)])]
    assert [original_number(rows, number) for number in range(4)] == [0, 1, 0, 0]
