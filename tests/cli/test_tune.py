"""`tune`: what it prints and returns, what it goes on with, and what it refuses."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.flags import parse_flags
from lit_sb3_ray.cli.tune import build_parser, study_settings
from lit_sb3_ray.experiment.arguments import train_arguments
from lit_sb3_ray.tuning.storage import open_study
from lit_sb3_ray.tuning.study_folder import claim_study, describe_study

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
def test_the_best_is_trained_again_with_fresh_seeds_and_a_signal_stops_that_too(told):
    """Its runs lie under the number of the trial: a better one that is found later is trained again by itself."""
    words = [*WORDS, "--n-trials", "1", "--pruner", "none", "-f", "again", "--retrain-best", "2"]
    troubles = [{"role": "train", "when": "step", "at": 50, "what": what} for what in ("pass", "SIGINT")]
    Path("plan.json").write_text(json.dumps(troubles))
    Path("driver.pid").write_text(str(os.getpid()))
    code, _, err = run(*words, "--env-kwargs", "folder:'.'", "role:'train'")
    (folder,) = Path("again").glob("a2c/*_study_1")
    assert (code, err[-1]) == (130, f"Stopped. Go on with: lit-sb3-ray tune --resume {folder}")
    assert json.loads(Path("plan.json").read_text()) == []
    code, out, _ = run("tune", "--resume", str(folder))
    assert code == 0
    assert re.fullmatch(r"Trained again with 2 fresh seeds: mean \S+, median \S+, IQM \S+", out[-1])
    assert len(list(folder.glob("retrained/trial_00000/a2c/*/result.yml"))) == 2


def test_it_tells_the_best_trial_how_to_train_with_it_and_where_everything_is(told):
    code, out, _ = told
    assert code == 0
    assert out[0] == "Study of a2c on StudyWorth-v0, seed 3"
    assert re.fullmatch(r"Best trial: [01], value \d+\.\d\d", out[1])
    assert any(re.fullmatch(r"  learning_rate: \d.*", line) for line in out)
    # `conf.yml` says 1000 env steps.
    train = "Train with it: lit-sb3-ray train --algo a2c --env StudyWorth-v0 --gym-packages study_envs -n 1000 --conf-file "
    (advice,) = (line.removeprefix(train) for line in out if line.startswith(train))
    assert "conf.yml trains StudyWorth-v0 for 1_000" in Path(advice).read_text()
    assert yaml.safe_load(Path(advice).read_text())["StudyWorth-v0"]["n_timesteps"] == 60
    assert out[-1] == str(FOLDER)
    assert {"study.yml", "study.log", "output", "trials"} <= {path.name for path in FOLDER.iterdir()}


def test_the_printed_command_trains_as_printed(told):
    (line,) = (line for line in told[1] if line.startswith("Train with it: lit-sb3-ray "))
    words = shlex.split(line.removeprefix("Train with it: lit-sb3-ray "))
    code, out, err = run(*words, "-f", "trained", "--eval-freq", "0", "--device", "cpu", "--vec-env", "dummy")
    assert code == 0, err
    assert yaml.safe_load((Path(out[-1]) / "StudyWorth-v0" / "args.yml").read_text())["n_timesteps"] == 1000


def test_the_report_again_replaces_the_files_of_the_study(told):
    files = {path for path in Path("logs").rglob("*") if path.suffix in (".csv", ".html", ".yml")}
    assert len([path for path in files if path.suffix == ".csv" and path.name.startswith("report_")]) == 1
    code, out, _ = run("report", str(FOLDER), "--no-optim-plots")
    assert code == 0
    assert {path for path in Path("logs").rglob("*") if path.suffix in (".csv", ".html", ".yml")} == files
    assert {Path(line).name for line in out} == {path.name for path in files if path.name.startswith(("report", "best"))}


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


def test_a_study_that_was_moved_is_gone_on_with_and_replayed_from_any_folder(told, tmp_path, monkeypatch):
    """Case B15: same seed, same result. `conf.yml` was given relative to the folder that it was begun in."""
    moved = tmp_path / "kept" / "a2c" / FOLDER.name
    shutil.copytree(FOLDER, moved)
    journal = (FOLDER / "study.log").absolute()
    before = journal.read_bytes()
    monkeypatch.chdir(tmp_path)
    number = len(open_study(str(moved / "study.log"), NAMED[3]).trials)
    code, out, _ = run("tune", "--resume", str(moved), "--n-trials", str(number + 1))
    assert code == 0
    assert out[-1] == str(moved.relative_to(tmp_path))
    assert (told[0], len(list(moved.parent.glob("report_*.csv")))) == (0, 1)
    assert (moved / "output" / f"trial_{number:05d}" / "output.log").is_file()
    row = open_study(str(moved / "study.log"), NAMED[3]).trials[number]
    code, out, _ = run("train", "--from-study", str(moved), "--trial-id", str(number), "-f", "runs")
    assert code == 0
    assert f"{row.value:.2f} +/- " in out[-2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "runs"]
    assert journal.read_bytes() == before


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


@pytest.mark.parametrize(("words", "most"), [([], 6), (["--n-trials", "9"], None), (["--max-total-trials", "7"], 7)])
def test_a_number_of_trials_that_is_given_goes_over_the_study_s(words, most, tmp_path):
    folder = claim_study(tmp_path, "a2c", "StudyWorth-v0")
    describe_study(folder, str(folder.journal), "s", train_arguments({"n_trials": 4, "max_total_trials": 6}))
    args = study_settings(parse_flags(build_parser(), ["--resume", str(folder.path), *words], train_arguments()))
    assert args.max_total_trials == most
    assert args.n_trials == (9 if most is None else 4)


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
        ([*WORDS[1:], "--storage", "study.db"], "is it sqlite:///study.db?"),
        ([*WORDS[1:], "--optimization-log-path", "/proc/version/x"], "--optimization-log-path '/proc/version/x' cannot be"),
        ([*WORDS[1:], "--storage-path", "/proc/version/x"], "--storage-path '/proc/version/x' cannot be written"),
        ([*WORDS[1:], "-f", "/proc/version/x"], "--log-folder '/proc/version/x' cannot be written"),
        ([*WORDS[1:], "--dry-run", "--search-space", "nope.yml"], "there is no file 'nope.yml'"),
        ([*WORDS[1:], "--dry-run", "--objective", "mean:99"], "--objective mean:99"),
        ([*WORDS[1:], "--dry-run", "--sampler", "grid"], "sampler 'grid' needs a finite space"),
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


@pytest.mark.slow
@pytest.mark.parametrize(("line", "left"), [("Study of ", False), ("connected to Ray ", None), ("Up to 1 trials", True)])
def test_sigterm_ends_it_with_its_own_code_whenever_it_comes(line, left, tmp_path):
    """Before Ray is there, once Ray has put its own handler in place, and in the study, which can be gone on with."""
    (tmp_path / "conf.yml").write_text(yaml.safe_dump(CONF))
    root = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{root.parent}:{root}", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "lit_sb3_ray", *WORDS, "--ray-address", "local", "--n-trials", "3", "-n", "100000000"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    told = []
    try:
        for one in process.stdout:
            told.append(one)
            if one.startswith(line):
                process.send_signal(signal.SIGTERM)
                break
        told.append(process.communicate(timeout=60)[0])
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143, "".join(told)
    studies = list((tmp_path / "logs").rglob("study.yml"))
    last = "".join(told).splitlines()[-1]
    resume = f"Stopped. Go on with: lit-sb3-ray tune --resume {FOLDER}"
    assert last == resume if studies else last == "lit-sb3-ray: interrupted"
    assert bool(studies) == bool(list((tmp_path / "logs").rglob("*"))) and left in (None, bool(studies))
    # Nothing of its session is at work any more.
    assert not [path for path in Path("/proc").glob("[0-9]*/stat") if _session(path) == process.pid]


def _session(stat):
    """The session of a process that runs."""
    with contextlib.suppress(OSError):
        state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
        return int(session) if state != "Z" else None
