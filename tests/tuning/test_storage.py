"""Studies in real storages, and the way back from a study to one trial's hyperparameters."""

import optuna
import pytest

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.spaces import sample
from lit_sb3_ray.tuning.storage import claim_for, find_trial, open_study

NAME = "s"


def storages(folder):
    return {"journal": str(folder / "deep" / "study.log"), "sqlite": f"sqlite:///{folder / 'study.db'}"}


def fill(storage, algo="a2c"):
    """Three trials: failed without a draw, complete with 1.0, complete with 2.0; the fourth is waiting."""
    study = open_study(storage, NAME)
    study.sampler = optuna.samplers.RandomSampler(seed=1)
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    for value in (1.0, 2.0):
        trial = study.ask()
        sample(algo, trial)
        study.tell(trial, value)
    study.enqueue_trial({})
    return study


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_study_is_found_again(kind, tmp_path):
    storage = storages(tmp_path)[kind]
    study = fill(storage)
    assert find_trial(storage, NAME, 1).params == study.trials[1].params
    assert find_trial(storage, NAME, None).number == 2
    assert len(open_study(storage, NAME).trials) == 4


def test_in_memory_nothing_is_kept():
    open_study(None, NAME).ask()
    assert open_study(None, NAME).trials == []


@pytest.mark.parametrize(
    ("name", "trial_id", "told"),
    [
        (NAME, 9, "--trial-id 9: no such trial in study 's' (it has 0 to 3)"),
        (NAME, -1, "--trial-id -1: no such trial"),
        (NAME, 0, "trial 0 of study 's' has no parameters (FAIL)"),
        (NAME, 3, "trial 3 of study 's' has no parameters (WAITING)"),
        ("t", None, "unknown study 't' (--study-name; storage"),
        (None, 1, "by --storage and --study-name"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(name, trial_id, told, tmp_path):
    storage = storages(tmp_path)["journal"]
    fill(storage)
    with pytest.raises(ConfigError) as error:
        find_trial(storage, name, trial_id)
    assert told in str(error.value)


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_looking_makes_no_file(kind, tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        find_trial(storages(tmp_path)[kind], NAME, None)
    assert list(tmp_path.iterdir()) == []


def test_no_complete_trial_is_no_best(tmp_path):
    storage = storages(tmp_path)["sqlite"]
    open_study(storage, NAME)
    with pytest.raises(ConfigError, match="no best trial yet"):
        find_trial(storage, NAME, None)


@pytest.mark.parametrize("storage", ["nowhere", "postgres://", "sqlite:////nowhere/at/all.db", "nosuchdb://x/y"])
def test_a_bad_url_is_one_line(storage):
    with pytest.raises(ConfigError, match="cannot be opened") as error:
        open_study(storage, NAME)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_journal_is_one_line(tmp_path):
    (tmp_path / "x.log").write_text("INFO: something else\n" * 3)
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_study(str(tmp_path / "x.log"), NAME)


def test_a_study_that_minimises_is_refused(tmp_path):
    storage = storages(tmp_path)["sqlite"]
    optuna.create_study(storage=storage, study_name=NAME, direction="minimize")
    with pytest.raises(ConfigError, match="does not maximise"):
        open_study(storage, NAME)


def manager(folder, **settings):
    return ExperimentManager(None, "a2c", "CartPole-v1", str(folder / "logs"), n_timesteps=100, **settings)


def test_every_way_to_load_a_trial(tmp_path):
    storage = storages(tmp_path)["journal"]
    params = fill(storage).trials[1].params
    bare, knowing = manager(tmp_path), manager(tmp_path, storage=storage, study_name=NAME)
    assert bare.load_trial(storage, NAME, 1, convert=False) == params
    assert bare.load_trial(storage, NAME, 1) == knowing.load_trial(1) == knowing.load_trial(trial_id=1)
    assert knowing.load_trial() == bare.load_trial(storage, NAME) != knowing.load_trial(1)
    assert bare.load_trial(storage, NAME, 1)["n_steps"] == params["n_steps"]


def test_a_trial_goes_between_the_file_and_what_is_given(tmp_path):
    storage = storages(tmp_path)["journal"]
    fill(storage)
    made = manager(tmp_path, storage=storage, study_name=NAME, trial_id=1, hyperparams={"n_steps": 7})
    raw, saved = made.read_hyperparameters()
    trial = made.load_trial(1)
    assert saved["n_steps"] == 7
    assert saved["learning_rate"] == trial["learning_rate"]
    assert saved["n_envs"] == made.entry()["n_envs"]
    assert raw["policy_kwargs"] == trial["policy_kwargs"]


def test_a_study_without_a_trial_means_its_best(tmp_path):
    """Case B13."""
    storage = storages(tmp_path)["journal"]
    fill(storage)
    best = manager(tmp_path, storage=storage, study_name=NAME).read_hyperparameters()
    assert best == manager(tmp_path, storage=storage, study_name=NAME, trial_id=2).read_hyperparameters()
    assert best != manager(tmp_path, storage=storage, study_name=NAME, trial_id=1).read_hyperparameters()


@pytest.mark.parametrize("half", [{"study_name": NAME}, {"storage": "x.log"}, {"trial_id": 0}])
def test_half_an_address_is_refused(half, tmp_path):
    with pytest.raises(ConfigError, match="--storage and --study-name"):
        manager(tmp_path, **half).read_hyperparameters()


def test_a_trial_of_another_algorithm_is_told_as_the_trial_s(tmp_path):
    storage = storages(tmp_path)["journal"]
    fill(storage, algo="ppo")
    with pytest.raises(ConfigError, match=r"unknown A2C hyperparameter '.*\(trial\)"):
        manager(tmp_path, storage=storage, study_name=NAME, trial_id=1).read_hyperparameters()


def test_a_study_of_another_algorithm_is_refused(tmp_path):
    storage = str(tmp_path / "s.log")
    study = open_study(storage, NAME)
    claim_for(study, "a2c")
    study.add_trial(optuna.trial.create_trial(params={}, distributions={}, value=1.0))
    claim_for(study, "a2c")
    with pytest.raises(ConfigError, match="is one of a2c, not of ppo"):
        claim_for(study, "ppo")
    with pytest.raises(ConfigError, match="is one of a2c, not of ppo"):
        find_trial(storage, NAME, None, "ppo")
