"""Going on with a study: only with what it was begun with. Nothing here needs Ray: it is refused before."""

import optuna
import pytest
import yaml
from studies import NAME, journal, rows_of, study_of

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.checking import FOLDER
from lit_sb3_ray.tuning.drawing import draw, space_of
from lit_sb3_ray.tuning.drivers import drivers_of, enter
from lit_sb3_ray.tuning.opening import open_for_work
from lit_sb3_ray.tuning.storage import open_study

SPACE = {
    "learning_rate": {"type": "float", "low": 1e-4, "high": 1e-2, "log": True},
    "gae_lambda": {"type": "categorical", "choices": [0.9, 0.95]},
}


@pytest.fixture
def begun(tmp_path):
    """A study with one row, which its driver has left; gives what begins such a manager again."""
    file = tmp_path / "space.yml"
    file.write_text(yaml.safe_dump(SPACE))
    settings = {"storage": journal(tmp_path), "study_name": NAME, "search_space": str(file)}
    manager = study_of(tmp_path, **settings)
    space = space_of(manager)
    opened = open_for_work(manager, space, "random")
    trial = opened.study.ask()
    draw(manager, space, trial)
    opened.study.tell(trial, 1.0)
    opened.lease.end()
    return tmp_path, settings


def resumed(folder, settings, **changed):
    return study_of(folder, **{"env_id": "StudyWorth-v0", **settings, **changed}, options={"entrance": "resume"})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"env_id": "StudyGlobal-v0"}, "env 'StudyWorth-v0', not 'StudyGlobal-v0'"),
        ({"n_timesteps": 200}, "n_timesteps 100, not 200"),
        ({"n_evaluations": 2}, r"marks \[20, 40, 60, 80, 100\], not \[50, 100\]"),
        ({"pruner": "median"}, "pruner 'none', not 'median'"),
        ({"trial_objective": "best"}, "objective 'last', not 'best'"),
        ({"seeds_per_trial": 2}, "seeds_per_trial 1, not 2"),
        ({"n_eval_episodes": 9}, "n_eval_episodes 2, not 9"),
        ({"seed": 2}, "study_seed 1, not 2"),
        ({"hyperparams": {"n_steps": 10, "callback": "study_envs.Worth"}}, "n_steps 20, not 10"),
    ],
)
def test_settings_that_change_what_a_trial_is_worth_are_refused(changed, told, begun):
    """Whoever joins from another machine names the study by its storage, and gives them all himself."""
    with pytest.raises(ConfigError, match=f"study 's' was begun with {told}"):
        resumed(*begun, **changed).hyperparameters_optimization()
    assert len(rows_of(begun[0])) == 1


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("gae_lambda", {"type": "categorical", "choices": [0.9, 0.95, 0.99]}),
        ("learning_rate", {"type": "float", "low": 1e-4, "high": 1e-2}),
    ],
)
def test_a_search_space_that_has_changed_is_refused(name, changed, begun):
    """Otherwise every trial that is left would fail within a second."""
    folder, _ = begun
    (folder / "space.yml").write_text(yaml.safe_dump({**SPACE, name: changed}))
    with pytest.raises(ConfigError, match=f"{name} in .*space.yml is not what study 's' was begun with"):
        resumed(*begun).hyperparameters_optimization()
    assert len(rows_of(folder)) == 1


def test_a_study_whose_folder_cannot_be_written_here_is_refused(begun, tmp_path):
    """As when it was begun on another machine, by somebody else; it is nobody's then."""
    folder, settings = begun
    (tmp_path / "home").touch()
    study = open_study(settings["storage"], NAME)
    study.set_user_attr(FOLDER, str(tmp_path / "home" / "logs" / "a2c" / "StudyWorth-v0_study_1"))
    for entrance in ("resume", "join"):
        beside = enter(study, "resume", NAME) if entrance == "join" else None
        manager = study_of(folder, options={"entrance": entrance}, **settings)
        with pytest.raises(ConfigError, match=r"the folder of study 's', '.*study_1' cannot be written: .*home is no w"):
            manager.hyperparameters_optimization()
        if beside is not None:
            beside.end()
    assert not any(driver.alive for driver in drivers_of(study))


def test_a_study_of_another_system_is_not_gone_on_with(tmp_path):
    """Nothing of it says what its trials were; one that only waits to be begun is told from it."""
    study, where = open_study(journal(tmp_path), NAME), {"storage": journal(tmp_path), "study_name": NAME}
    study.enqueue_trial({})
    with pytest.raises(ConfigError, match="has not been begun: leave --resume and --join out"):
        resumed(tmp_path, where).hyperparameters_optimization()
    study.add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(ConfigError, match=r"study 's' in .* has trials of another system, .*: give another --study-name"):
        resumed(tmp_path, where).hyperparameters_optimization()


def test_a_driver_that_cannot_begin_is_not_at_work(begun):
    """Its process may live on, as that of a notebook does."""
    manager = resumed(*begun)
    space = space_of(manager)
    (begun[0] / "logs" / "a2c" / "StudyWorth-v0_study_1" / "study.yml").unlink()
    (begun[0] / "logs" / "a2c" / "StudyWorth-v0_study_1" / "study.yml").mkdir()
    with pytest.raises(OSError, match=r"study\.yml"):
        open_for_work(manager, space, "random")
    assert not any(driver.alive for driver in drivers_of(open_study(begun[1]["storage"], NAME)))


def test_other_bounds_are_the_same_space(begun):
    folder, _ = begun
    (folder / "space.yml").write_text(yaml.safe_dump({**SPACE, "learning_rate": {**SPACE["learning_rate"], "high": 0.1}}))
    manager = resumed(*begun)
    opened = open_for_work(manager, space_of(manager), "random")
    opened.lease.end()
    assert opened.lease.driver.number == 1
