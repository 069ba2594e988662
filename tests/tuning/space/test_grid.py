"""`--sampler grid`: every point once, whatever happens to rows and however many drivers there are."""

import pickle
import subprocess
import sys
import time

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.rows import WARM_START, break_off, enqueue_continuation, fail, to_continue
from lit_sb3_ray.tuning.space import grid
from lit_sb3_ray.tuning.space.grid import Grid, GridSampler, grid_of
from lit_sb3_ray.tuning.space.samplers import build_sampler, choose_sampler
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.space.warm_start import packaged_params
from lit_sb3_ray.tuning.storage import open_study

SPACE = """
gamma: {type: float, low: 0.9, high: 0.99, step: 0.03}
n_steps: {type: int, low: 32, high: 64, step: 32}
policy_kwargs.net_arch: {type: categorical, choices: [[8], [16]]}
learning_rate: {type: float, low: 0.001, high: 0.001}
"""
SIZE = 16

DRIVER = """
import pickle, sys, time
from lit_sb3_ray.tuning.storage import open_study
study = open_study(sys.argv[1], "s")
study.sampler = pickle.loads(bytes.fromhex(sys.argv[2]))
study.set_user_attr(f"ready {sys.argv[3]}", True)
while len(study.user_attrs) < 3:
    time.sleep(0.005)
for _ in range(6):
    study.tell(study.ask(study.sampler.grid.distributions), 1.0)
"""


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.yml"
    path.write_text(SPACE)
    return find_space("ppo", str(path))


@pytest.fixture
def study(space, tmp_path):
    opened = open_study(str(tmp_path / "study.log"), "s")
    opened.sampler = build_sampler("grid", 7, 0, space)
    return opened


def take(study, space, count=1):
    for _ in range(count):
        trial = study.ask()
        space.sample(trial)
    return trial


def points(study, states=None):
    return [tuple(sorted(row.params.items())) for row in study.get_trials(states=states)]


def test_every_point_once_and_the_same_for_the_same_seed(study, space):
    take(study, space, SIZE)
    assert len(set(points(study))) == SIZE
    other = open_study(None, None)
    other.sampler = build_sampler("grid", 7, 0, space)
    take(other, space, SIZE)
    assert points(other) == points(study)
    third = open_study(None, None)
    third.sampler = build_sampler("grid", 8, 0, space)
    take(third, space, SIZE)
    assert points(third) != points(study)
    assert set(points(third)) == set(points(study))


def test_remaining_points_are_counted_and_what_comes_after_is_told(study, space, caplog):
    assert study.sampler.remaining(study) == SIZE == grid_of(space).size
    take(study, space, SIZE)
    assert study.sampler.remaining(study) == 0
    take(study, space)
    assert "Trial 16 repeats a point of the grid: all 16 are taken" in caplog.text


def test_points_of_trials_that_were_broken_off_are_gone_on_with_and_not_taken_again(study, space, tmp_path):
    take(study, space, 2)
    study.tell(take(study, space), 1.0)
    fail(study, take(study, space), "ValueError: x", "")
    study.tell(take(study, space), state=TrialState.PRUNED)
    # The driver dies; another one takes over.
    for row in study.get_trials(states=(TrialState.RUNNING,)):
        break_off(study, row)
    resumed = open_study(str(tmp_path / "study.log"), "s")
    resumed.sampler = build_sampler("grid", 9, 0, space)
    for row in to_continue(resumed.get_trials()):
        enqueue_continuation(resumed, row)
    take(resumed, space, SIZE - 3)
    alive = points(resumed, (TrialState.RUNNING, TrialState.COMPLETE, TrialState.PRUNED))
    failed = [row for row in resumed.get_trials() if row.user_attrs.get("failure")]
    everything = [*alive, *(tuple(sorted(row.params.items())) for row in failed)]
    assert len(everything) == len(set(everything)) == SIZE
    assert resumed.sampler.remaining(resumed) == 0


def test_a_row_that_was_cut_off_while_it_drew_keeps_what_it_has(study, space):
    trial = study.ask()
    gamma = trial.suggest_float("gamma", 0.9, 0.99, step=0.03)
    study.tell(trial, state=TrialState.FAIL)
    study.enqueue_trial({"gamma": gamma})
    assert take(study, space).params["gamma"] == gamma
    take(study, space, SIZE - 1)
    assert len({point for point in points(study) if len(point) == 4}) == SIZE


def test_the_file_s_own_trial_takes_no_point(study, space):
    params = packaged_params(space, {"gamma": 0.97, "policy_kwargs": "dict(net_arch=[16])"})
    study.enqueue_trial(params, user_attrs={WARM_START: True})
    assert take(study, space).params == params
    take(study, space, SIZE)
    assert len(set(points(study)[1:])) == SIZE


def test_a_driver_waits_for_the_rows_before_its_own(study, space, monkeypatch):
    behind = study.ask()  # Another driver has begun a row and not drawn yet.
    monkeypatch.setattr(grid, "WAIT_S", 0.3)
    begun = time.monotonic()
    take(study, space)
    assert time.monotonic() - begun > 0.3
    begun = time.monotonic()
    take(study, space)  # It was given up: it is not waited for again.
    assert time.monotonic() - begun < 0.3
    study.tell(behind, state=TrialState.FAIL)


def test_three_drivers_at_once_share_the_points(space, tmp_path):
    storage, sampler = str(tmp_path / "study.log"), pickle.dumps(build_sampler("grid", 7, 0, space)).hex()
    open_study(storage, "s")
    drivers = [
        subprocess.Popen([sys.executable, "-c", DRIVER, storage, sampler, str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    for driver in drivers:
        _, errors = driver.communicate(timeout=120)
        assert driver.returncode == 0, errors
    found = points(open_study(storage, "s"))
    assert len(found) == 18
    assert len(set(found)) == SIZE


def test_a_grid_of_any_size_is_not_written_down(tmp_path):
    path = tmp_path / "large.yml"
    path.write_text(
        "\n".join(f"{name}: {{type: int, low: 1, high: 1000000000}}" for name in ("n_steps", "n_epochs", "batch_size"))
    )
    space = find_space("ppo", str(path))
    study = open_study(None, None)
    study.sampler = pickle.loads(pickle.dumps(build_sampler("grid", 0, 0, space)))
    take(study, space, 50)
    assert study.sampler.grid.size == 10**27
    assert len(set(points(study))) == 50
    assert study.sampler.grid.index(study.sampler.grid.point(10**20)) == 10**20


def test_what_is_not_finite_is_named(tmp_path):
    path = tmp_path / "space.yml"
    path.write_text("n_epochs: {type: int, low: 1, high: 9}\ngamma: {type: float, low: 0.9, high: 1}")
    for ask in (choose_sampler, build_sampler):
        arguments = ("grid", False, 10) if ask is choose_sampler else ("grid", 0, 0)
        with pytest.raises(ConfigError, match=r"needs a finite space: 'gamma' \(.*space.yml\) is any number of a range"):
            ask(*arguments, find_space("ppo", str(path)))
        with pytest.raises(ConfigError, match=r"needs a finite space: 'one_minus_gamma' .the built-in space of dqn"):
            ask(*arguments, find_space("dqn"))
        with pytest.raises(ConfigError, match="needs a search space"):
            ask(*arguments)
    given = {"gamma": 0.9, "learning_rate": 0.1, "exploration_fraction": 0.1, "exploration_final_eps": 0.1}
    with pytest.raises(ConfigError, match="that of the built-in space of dqn depends on what is drawn"):
        grid_of(find_space("dqn").settle(given))
    assert grid_of(find_space("dqn").settle({**given, "train_freq": 1})).size == 10 * 3 * 20_000


def test_values_are_found_again_after_a_storage(space):
    points_of = GridSampler(grid_of(space), 0).grid
    for index in range(points_of.size):
        assert points_of.index(points_of.point(index)) == index
    assert points_of.index({"gamma": 0.91, "n_steps": 32, "policy_kwargs.net_arch": "[8]", "learning_rate": 0.001}) is None
    assert points_of.index({"gamma": 0.9}) is None


def test_optuna_s_own_names_are_as_they_are_used_here():
    study = open_study(None, None)
    study.enqueue_trial({"x": 1})
    assert study.get_trials()[0].system_attrs[grid.FIXED] == {"x": 1}


@pytest.mark.parametrize(("low", "high", "step"), [(0.9, 0.95, 0.05), (0.1, 0.3, 0.1), (0.0, 0.7, 0.1), (1.0, 3.0, 1.0)])
def test_the_last_step_is_drawn_although_its_sum_lies_above_the_bound(low, high, step):
    points = Grid({"x": FloatDistribution(low, high, step=step)})
    study = optuna.create_study(sampler=GridSampler(points, 0))
    study.optimize(lambda trial: trial.suggest_float("x", low, high, step=step), n_trials=points.size)
    assert sorted(trial.value for trial in study.trials) == pytest.approx([low + step * place for place in range(points.size)])
