"""Samplers by name: without warnings, never the same points from one seed, and refused where something is missing."""

import importlib.util
import os
import subprocess
import sys
import warnings

import optuna
import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.samplers import CMAES_FROM, SAMPLERS, build_sampler, choose_sampler, worker_seed
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.storage import open_study

LEARNERS = ["cmaes", "random", "tpe"]

NUMBERS = """
gamma: {type: float, low: 0.9, high: 0.99}
learning_rate: {type: float, low: 1e-4, high: 1e-2, log: true}
n_steps: {type: int, low: 32, high: 256}
"""


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.yml"
    path.write_text(NUMBERS)
    return find_space("ppo", str(path))


def begin(name, seed, space, storage=None, n_startup_trials=2):
    study = open_study(storage, "s" if storage else None)
    study.sampler = build_sampler(name, seed, n_startup_trials, space)
    return study


def run(study, space, count):
    for _ in range(count):
        trial = study.ask()
        space.sample(trial)
        study.tell(trial, -abs(trial.params.get("gamma", trial.params.get("one_minus_gamma", 0)) - 0.95))
    return [row.params for row in study.get_trials()]


@pytest.mark.parametrize("algo", ["ars", "dqn", "ppo", "td3", "tqc"])
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("n_startup_trials", [0, 3])
def test_nothing_is_warned_of(name, algo, n_startup_trials):
    space = find_space(algo)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(run(begin(name, 0, space, n_startup_trials=n_startup_trials), space, 8)) == 8


@pytest.mark.parametrize("name", LEARNERS)
def test_drivers_with_one_seed_never_draw_the_same_points(name, numbers, tmp_path):
    """Case B8. Four drivers of a new study, then a resumed one: all start-up draws and all later ones differ."""
    storage = str(tmp_path / "study.log")
    studies = [begin(name, worker_seed(42, number, 0), numbers, storage, n_startup_trials=8) for number in range(4)]
    for _ in range(5):
        for study in studies:
            run(study, numbers, 1)
    run(begin(name, worker_seed(42, 4, 20), numbers, storage), numbers, 5)
    drawn = [tuple(row.params.values()) for row in studies[0].get_trials()]
    assert len(drawn) == 25
    assert len({point[0] for point in drawn}) == 25


def test_seeds_of_drivers_are_all_different_and_always_the_same():
    seeds = {worker_seed(seed, driver, known) for seed in range(10) for driver in range(10) for known in range(10)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert worker_seed(42, 0, 0) == 3444837047
    assert worker_seed(2**64, 10**6, 10**6) < 2**32


def test_trials_at_work_keep_others_away(numbers):
    """TPE counts running trials as poor ones: drivers that ask at once do not crowd at the best point."""
    study = begin("tpe", 0, numbers, n_startup_trials=10)
    run(study, numbers, 20)
    running = []
    for _ in range(20):
        trial = study.ask()
        numbers.sample(trial)
        running.append(trial.params["gamma"])
    assert len(set(running)) == 20


def test_auto_goes_by_space_and_budget(numbers, tmp_path):
    path = tmp_path / "finite.yml"
    path.write_text("n_epochs: {type: int, low: 1, high: 10}\nuse_sde: {type: categorical, choices: [true, false]}")
    finite = find_space("ppo", str(path))
    assert choose_sampler("auto", finite.numbers_only, 20, finite) == "grid"
    assert choose_sampler("auto", finite.numbers_only, 19, finite) == "tpe"
    assert choose_sampler("auto", numbers.numbers_only, CMAES_FROM - 1, numbers) == "tpe"
    assert choose_sampler("auto", numbers.numbers_only, CMAES_FROM, numbers) == "cmaes"
    for algo in ("ppo", "dqn"):
        assert choose_sampler("auto", False, 10_000, find_space(algo)) == "tpe"


def test_cmaes_learns_numbers_and_leaves_choices_to_tpe():
    space = find_space("ppo")
    study = begin("cmaes", 0, space)
    run(study, space, 12)
    assert any("cma:" in key for row in study.get_trials() for key in row.system_attrs)


@pytest.mark.parametrize(("name", "package"), [("gp", "scipy"), ("cmaes", "cmaes")])
def test_a_missing_package_is_told_with_its_extra(name, package, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda asked: None if asked == package else found(asked))
    for ask in (lambda: choose_sampler(name, True, 1), lambda: build_sampler(name, 0, 0)):
        with pytest.raises(ConfigError) as caught:
            ask()
        assert str(caught.value) == f"sampler '{name}' needs the package {package}: pip install 'lit-sb3-ray[samplers]'"


def test_optuna_s_gaussian_process_still_needs_scipy():
    """Why the package asks for it: without it, Optuna fails in the middle of a study, and not at its start."""
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import optuna\n"
        "study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0, n_startup_trials=1))\n"
        "study.optimize(lambda trial: trial.suggest_float('x', 0, 1), n_trials=3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode != 0
    assert "scipy" in done.stderr


def test_a_gaussian_process_learns(numbers):
    pytest.importorskip("scipy", reason="the lock leaves scipy out, since torch's import would load it, too")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for space, n_startup_trials in ((numbers, 0), (find_space("tqc"), 3)):
            study = begin("gp", 3, space, n_startup_trials=n_startup_trials)
            assert len({tuple(params.values()) for params in run(study, space, 5)}) == 5


def test_names():
    assert SAMPLERS == ("auto", "cmaes", "gp", "grid", "random", "tpe")
    with pytest.raises(ConfigError, match="unknown sampler 'cmase': did you mean 'cmaes'"):
        choose_sampler("cmase", True, 1)
    with pytest.raises(ConfigError, match="unknown sampler 'auto'"):
        build_sampler("auto", 0, 0)
    assert isinstance(build_sampler("tpe", 0, 0), optuna.samplers.TPESampler)
