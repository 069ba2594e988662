"""`tune`: what it prints and returns, what it goes on with, and what it refuses."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest
import yaml

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.flags import parse_flags
from lit_sb3_ray.cli.tune import build_parser, study_settings
from lit_sb3_ray.experiment.arguments import train_arguments
from lit_sb3_ray.tuning.storage import open_study

WORDS = ["tune", "--algo", "a2c", "--env", "StudyWorth-v0", "--gym-packages", "study_envs", "--device", "cpu", "--seed", "3"]
WORDS += ["-n", "60", "--n-evaluations", "3", "--eval-episodes", "1", "--n-jobs", "1", "--conf-file", "conf.yml"]
WORDS += ["-params", "n_steps:20"]
CONF = {"StudyWorth-v0": {"n_timesteps": 1000, "policy": "MlpPolicy", "callback": "study_envs.Worth"}}
FOLDER = Path("logs/a2c/StudyWorth-v0_study_1")
NAMED = ["--storage", str(FOLDER / "study.log"), "--study-name", "a2c_StudyWorth-v0_study_1"]


def run(*words):
    """The exit code, and the lines of standard output and of standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(list(words))
    # The env itself prints when it is tried at the beginning.
    told = [line for line in out.getvalue().splitlines() if not line.endswith("env opens")]
    return code, told, err.getvalue().splitlines()


@pytest.fixture(scope="module")
def home(ray_instance, tmp_path_factory):
    """A folder with a finished study of two trials, and what the command has printed."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "conf.yml").write_text(yaml.safe_dump(CONF))
    with contextlib.chdir(folder):
        return folder, run(*WORDS, "--n-trials", "2", "--pruner", "none")


@pytest.fixture
def told(home, monkeypatch):
    """What the study has printed; the test runs in its folder."""
    monkeypatch.chdir(home[0])
    return home[1]


@pytest.mark.slow
def test_the_best_is_trained_again_with_fresh_seeds(told):
    words = [*WORDS, "--n-trials", "1", "--pruner", "none", "-f", "again", "--retrain-best", "2"]
    code, out, _ = run(*words)
    assert code == 0
    assert re.fullmatch(r"Trained again with 2 fresh seeds: mean \S+, median \S+, IQM \S+", out[-1])
    runs = sorted(Path("again").glob("a2c/*_study_1/retrained/a2c/*/result.yml"))
    assert len(runs) == 2


def test_it_tells_the_best_trial_how_to_train_with_it_and_where_everything_is(told):
    code, out, _ = told
    assert code == 0
    assert out[0] == "Study of a2c on StudyWorth-v0, seed 3"
    assert re.fullmatch(r"Best trial: [01], value \d+\.\d\d", out[1])
    assert any(re.fullmatch(r"  learning_rate: \d.*", line) for line in out)
    train = "Train with it: lit-sb3-ray train --algo a2c --env StudyWorth-v0 --conf-file "
    (advice,) = (line.removeprefix(train) for line in out if line.startswith(train))
    assert yaml.safe_load(Path(advice).read_text())["StudyWorth-v0"]["n_timesteps"] == 60
    assert out[-1] == str(FOLDER)
    assert {"study.yml", "study.log", "output", "trials"} <= {path.name for path in FOLDER.iterdir()}


def test_a_study_is_named_after_its_run(told):
    assert len(open_study(str(FOLDER / "study.log"), "a2c_StudyWorth-v0_study_1", must_exist=True).trials) == 2


def test_more_trials_are_done_by_going_on(told):
    """Twice: the second finds nothing left to do; the settings are the study's own, wherever it is begun from."""
    for _ in range(2):
        code, out, _ = run("tune", "--resume", str(FOLDER), "--n-trials", "3")
        assert code == 0
        assert out[0] == "Study of a2c on StudyWorth-v0, seed 3"
    rows = open_study(str(FOLDER / "study.log"), "a2c_StudyWorth-v0_study_1").trials
    assert [row.state.name for row in rows] == ["COMPLETE"] * 3
    assert all(list(row.intermediate_values) == [20, 40, 60] for row in rows)
    assert len({row.params["learning_rate"] for row in rows}) == 3


def test_a_study_is_meant_by_its_storage_and_name(told):
    code, out, err = run("tune", "--resume", *NAMED, "--dry-run")
    assert (code, err) == (0, [])
    assert any("StudyWorth-v0" in line for line in out)


@pytest.mark.parametrize("words", [["."], NAMED])
def test_a_study_s_own_settings_are_taken_up(words, told, monkeypatch):
    """Its folder may be the working directory; that of a named study is found through its storage."""
    monkeypatch.chdir(FOLDER if words == ["."] else Path())
    args = study_settings(parse_flags(build_parser(), ["--resume", *words], train_arguments()))
    assert (args.algo, args.env, args.seed, args.n_timesteps) == ("a2c", "StudyWorth-v0", 3, 60)
    assert (args.storage, args.study_name) == (str(Path("study.log" if words == ["."] else NAMED[1]).absolute()), NAMED[3])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--resume", str(FOLDER), "--algo", "ppo"], "--algo 'ppo' contradicts the study"),
        (["--resume", str(FOLDER), "-n", "99"], "--n-timesteps 99 contradicts the study"),
        (["--join", str(FOLDER)], "nobody works on study"),
        (["--resume", "logs"], "is no study's folder"),
        (["--resume"], "need --storage and --study-name"),
        (["--resume", str(FOLDER), "--join", str(FOLDER)], "not allowed with argument"),
        (
            [*WORDS[1:], "--storage", str(FOLDER / "study.log"), "--study-name", "a2c_StudyWorth-v0_study_1"],
            "exists already: --resume",
        ),
        ([*WORDS[1:], "--n-trials", "0"], "argument --n-trials: 0 is below 1"),
        ([*WORDS[1:], "--max-total-trials", "0"], "argument --max-total-trials: 0 is below 1"),
        ([*WORDS[1:], "--n-jobs", "0"], "argument --n-jobs: 0 is below 1"),
        ([*WORDS[1:], "--max-concurrent", "-1"], "argument --max-concurrent: -1 is below 1"),
        ([*WORDS[1:], "--n-startup-trials", "-1"], "argument --n-startup-trials: -1 is below 0"),
        ([*WORDS[1:], "--n-evaluations", "0"], "argument --n-evaluations: 0 is below 1"),
        ([*WORDS[1:], "--objective", "mean:99"], "--objective mean:99: a trial has 3 evaluations (--n-evaluations)"),
        ([*WORDS[1:], "--cpus-per-trial", "512"], "a trial needs 512 CPU, and no node of Ray has more than 4 CPU"),
        ([*WORDS[1:], "--gpus-per-trial", "nan"], "--gpus-per-trial must not be negative, not nan"),
        ([*WORDS[1:], "--objective", "mean"], "--objective 'mean' is none of"),
        ([*WORDS[1:], "--cpus-per-trial", "0"], "--cpus-per-trial"),
        ([*WORDS[1:], "--gpus-per-trial", "1.5"], "a trial trains on one GPU"),
        ([*WORDS[1:], "--time-budget", "-1"], "--time-budget"),
        ([*WORDS[1:], "--checkpoint-every", "-1"], "--checkpoint-every must not be negative"),
        ([*WORDS[1:], "--scheduler", "ashaa"], "invalid choice: 'ashaa'"),
        ([*WORDS[1:], "--trial-id", "0"], "--trial-id"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, part, told):
    before = {path for path in Path().rglob("*") if path.is_file()}
    code, _, err = run("tune", *words)
    assert code == 2
    assert part in err[-1]
    assert {path for path in Path().rglob("*") if path.is_file()} == before


def test_a_study_that_its_time_has_ended_tells_how_to_go_on(ray_instance, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("conf.yml").write_text(yaml.safe_dump(CONF))
    Path("plan.json").write_text(json.dumps([{"role": "train", "when": "step", "at": 3, "what": "hang"}]))
    words = ["--n-trials", "2", "--pruner", "none", "--time-budget", "1", "--env-kwargs", "folder:'.'", "role:'train'"]
    code, _, err = run(*WORDS, *words)
    assert code == 1
    assert err[-1] == f"Ended with 2 trials to go. Go on with: lit-sb3-ray tune --resume {FOLDER}"
    Path("plan.json").write_text("[]")
    code, _, err = run("tune", "--resume", str(FOLDER), "--time-budget", "600")
    assert code == 0
    assert not any("to go" in line for line in err)
    rows = open_study(str(FOLDER / "study.log"), "a2c_StudyWorth-v0_study_1").trials
    assert [row.state.name for row in rows] == ["FAIL", "COMPLETE", "COMPLETE"]


def test_when_every_trial_fails_the_code_is_1(ray_instance, tmp_path, monkeypatch):
    """Case B1 carried to the end: each failure is in the reports, none ends the study."""
    monkeypatch.chdir(tmp_path)
    Path("conf.yml").write_text(yaml.safe_dump(CONF))
    error = {"role": "train", "when": "step", "at": 3, "what": "error"}
    Path("plan.json").write_text(json.dumps([error, error]))
    code, _, err = run(*WORDS, "--n-trials", "2", "--env-kwargs", "folder:'.'", "role:'train'")
    assert code == 1
    assert any(line.startswith("No trial is complete; what happened is in ") for line in err)
    rows = open_study(str(FOLDER / "study.log"), "a2c_StudyWorth-v0_study_1").trials
    assert [row.user_attrs["failure"] for row in rows] == ["ValueError: the joint is broken"] * 2
