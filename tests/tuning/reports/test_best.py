"""The best trials as hyperparameter files that `--conf-file` takes."""

import json
import math

import made_studies as made
import pytest
import yaml
from optuna.distributions import CategoricalDistribution
from optuna.trial import create_trial

from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.reports.best import as_file, best_trials
from lit_sb3_ray.tuning.reports.record import record

PARAMS = {"learning_rate": 1e-3, "one_minus_gamma": 0.01, "n_steps_pow": 6, "net_arch": "tiny"}
UNKNOWN = create_trial(params={"net_arch": "giant"}, distributions={"net_arch": CategoricalDistribution(["giant"])}, value=1.0)


def best_of(*rows, number=1, **settings):
    study = made.new_study(**settings)
    study.add_trials(rows)
    return best_trials(record(study), number)


def test_the_best_trial_is_written_with_the_values_that_it_trained_with(tmp_path):
    entry = {
        "n_timesteps": 10000,
        "n_envs": 2,
        "policy": "MlpPolicy",
        "learning_rate": 1e-05,
        "policy_kwargs": {"net_arch": [8]},
    }
    facts = {"hyperparams": json.dumps(entry), "spread": 3.25, "seed_values": [1.0, 2.0]}
    text = as_file(best_of(made.complete(PARAMS, 1.0), made.complete(PARAMS, 20.0, **facts), made.pruned(PARAMS)))
    assert yaml.safe_load(text) == {"CartPole-v1": entry}
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments == [
        "# Trial 1 of study s: 20 (+/- 3.25 over 2 seeds) after 10,000 env steps",
        "# lit-sb3-ray train --algo ppo --env CartPole-v1 -n 100000 --seed 7 --conf-file THIS_FILE",
        "# n_timesteps is the study's; hyperparams/ppo.yml trains CartPole-v1 for 100_000, and so does -n 100000.",
    ]
    file = tmp_path / "best.yml"
    file.write_text(text)
    manager = ExperimentManager(None, "ppo", "CartPole-v1", str(tmp_path / "logs"), config=str(file), device="cpu", verbose=0)
    model = manager.setup_experiment()
    assert (model.n_envs, model.learning_rate, manager.hyperparams.n_timesteps) == (2, 1e-05, 10000)


def test_a_budget_as_long_as_the_file_s_is_not_remarked():
    (best,) = best_of(made.complete(PARAMS, hyperparams={"n_timesteps": 100_000, "policy": "MlpPolicy"}))
    assert best.entry["n_timesteps"] == 100_000
    assert not any("n_timesteps" in note or " -n " in note for note in best.notes)


def test_the_command_has_what_the_study_s_env_and_file_need():
    """The budget is that of the study's own file, not of the packaged one; a file without a budget adds none."""
    flags = ["--gym-packages", "my_envs", "--env-kwargs", "name:'a b'"]
    told = {**made.ATTRIBUTES, "run_flags": flags, "full_budget": [25000, "my.yml"]}
    (best,) = best_of(made.complete(PARAMS), attributes=told)
    command = "lit-sb3-ray train --algo ppo --env CartPole-v1 --gym-packages my_envs --env-kwargs 'name:'\"'\"'a b'\"'\"''"
    assert best.notes[-2:] == (
        f"{command} -n 25000 --seed 7 --conf-file THIS_FILE",
        "n_timesteps is the study's; my.yml trains CartPole-v1 for 25_000, and so does -n 25000.",
    )
    (best,) = best_of(made.complete(PARAMS), attributes={**told, "full_budget": [None, "my.yml"]})
    assert best.notes[-1] == f"{command} --seed 7 --conf-file THIS_FILE"


def test_a_study_that_was_stopped_says_how_to_go_on():
    broken = [made.row(made.TrialState.FAIL, PARAMS, driver="d") for _ in range(2)]
    told = r"\(2 broken off\); `lit-sb3-ray tune --resume '/my runs/x'` goes on with what was broken off"
    with pytest.raises(ConfigError, match=told):
        best_of(*broken, attributes={**made.ATTRIBUTES, "folder": "/my runs/x"})


def test_a_member_of_a_population_tells_what_it_was_in_the_end():
    (best,) = best_of(made.complete(PARAMS, 1.0, params_at_end={"learning_rate": 0.0012, "net_arch": "tiny"}))
    assert best.entry["learning_rate"] == 1e-3
    assert any(note.endswith("in the end it was learning_rate: 0.0012, net_arch: tiny.") for note in best.notes)


def test_several_are_a_list_the_best_first():
    text = as_file(best_of(*[made.complete(PARAMS, value) for value in (1.0, 3.0, 2.0)], number=2))
    assert [list(one) for one in yaml.safe_load(text)] == [["CartPole-v1"]] * 2
    assert [line for line in text.splitlines() if "Trial" in line] == [
        "# Trial 1 of study s: 3 after 10,000 env steps",
        "# Trial 2 of study s: 2 after 10,000 env steps",
    ]
    assert "# 2.\n" in text
    assert len(best_of(made.complete(PARAMS), number=5)) == 1


def test_a_study_of_rl_zoo3_has_its_file_made_from_the_packaged_hyperparameters():
    row = made.row(made.TrialState.COMPLETE, PARAMS, 5.0, gamma=0.99, n_steps=64)
    zoo = {"command": "python -m rl_zoo3.train --algo ppo --env CartPole-v1 -n 2000 -optimize", "n_steps": "32"}
    (best,) = best_of(row, attributes=zoo)
    assert best.env_id == "CartPole-v1"
    assert best.entry["learning_rate"] == 1e-3
    assert best.entry["n_steps"] == 64
    assert best.entry["policy_kwargs"]["net_arch"] == {"pi": [64], "vf": [64]}
    assert best.entry["n_envs"] == 8
    assert "Made from hyperparams/ppo.yml, entry CartPole-v1, and the trial's parameters" in best.notes[1]


def test_a_study_without_an_env_stands_under_default():
    (best,) = best_of(made.complete(PARAMS), attributes={})
    assert best.env_id == "default"
    assert len(best.notes) == 1


def test_hyperparameters_that_are_no_json_are_made_anew(caplog):
    (best,) = best_of(made.complete(PARAMS, hyperparams="{broken"))
    assert best.entry["n_steps"] == 64
    assert best.entry["n_timesteps"] == 10000
    assert "its hyperparameters are no JSON" in caplog.text


@pytest.mark.parametrize(
    ("rows", "attributes", "told"),
    [
        ([], made.ATTRIBUTES, r"has no best trial yet: none is complete with a finite value \(no trials at all\)"),
        ([made.pruned(PARAMS), made.failed({})], made.ATTRIBUTES, r"\(1 pruned, 1 fail\)"),
        ([made.complete(PARAMS, math.inf)], made.ATTRIBUTES, r"\(1 complete\)"),
        ([made.row(made.TrialState.COMPLETE, PARAMS, 1.0)], {}, "does not say which algorithm and env it is of"),
        ([made.row(made.TrialState.COMPLETE, PARAMS, 1.0)], {"algo": "pppo", "env": "CartPole-v1"}, "pppo"),
        ([UNKNOWN], made.ATTRIBUTES, "the parameters of trial 0 are not of this package's spaces: 'giant'"),
    ],
)
def test_what_cannot_be_written_is_told_in_one_line(rows, attributes, told):
    with pytest.raises(ConfigError, match=told) as error:
        best_of(*rows, attributes=attributes)
    assert "\n" not in str(error.value)


def test_names_cannot_end_a_comment():
    text = as_file(best_of(made.complete(PARAMS), name="s\nCartPole-v1: {policy: Evil}\n#"))
    assert list(yaml.safe_load(text)) == ["CartPole-v1"]
    assert yaml.safe_load(text)["CartPole-v1"]["policy"] == "MlpPolicy"
