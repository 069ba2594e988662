"""Drivers: who may work on a study, and what becomes of it when they are interrupted, killed, ended, succeeded and joined."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import optuna
import pytest
import study_envs
import yaml
from optuna.trial import TrialState
from studies import NAME, enqueue, journal, met, plan, rows_of, study_of

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.study_options import StudyOptions
from lit_sb3_ray.tuning import drivers
from lit_sb3_ray.tuning.checking import FOLDER, TOTAL
from lit_sb3_ray.tuning.drivers import Lease, drivers_of, enter, request_stop
from lit_sb3_ray.tuning.rows import CHECKPOINT, CONTINUES, FAILURE, counts
from lit_sb3_ray.tuning.schedule.schedulers import original_number
from lit_sb3_ray.tuning.space.samplers import worker_seed
from lit_sb3_ray.tuning.storage import open_storage, open_study

# A busy machine takes its time to start a Ray for each driver.
pytestmark = pytest.mark.timeout(900)
SECONDS = 240.0
"""More than any driver here needs, the machine being busy."""
IN_TIME_S = 30.0
"""Five where nothing else runs: one for what can end by itself, one for the reports, three for Ray and Python to end."""


def new_study():
    return optuna.create_study()


def dead(lease):
    """The lease's driver is a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    lease.driver = drivers.Driver(**{**vars(lease.driver), "pid": process.pid})
    lease._write()


def test_a_study_is_begun_once():
    study = new_study()
    enter(study, "new", "study 's'").end()
    with pytest.raises(ConfigError, match="study 's' exists already: --resume goes on with it, another --study-name"):
        enter(study, "new", "study 's'")


def test_rows_that_wait_are_no_beginning():
    study = new_study()
    study.enqueue_trial({"x": 1.0})
    assert enter(study, "new", "study 's'").driver.number == 0


def test_a_study_of_another_system_is_not_begun_again():
    study = new_study()
    study.add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(ConfigError, match=r"s has trials of another system, .*: give another --study-name"):
        enter(study, "new", "s")


@pytest.mark.parametrize(("entrance", "told"), [("new", "--join works beside it"), ("resume", "`stop` ends it")])
def test_a_living_driver_is_not_pushed_aside(entrance, told):
    study = new_study()
    enter(study, "new", "s")
    with pytest.raises(ConfigError, match=f"s is worked on by process {os.getpid()} on .*{told}"):
        enter(study, entrance, "s")
    assert enter(study, "join", "s").driver.number == 1


@pytest.mark.parametrize("entrance", ["new", "resume"])
def test_of_several_that_enter_in_the_same_moment_one_stays(entrance, tmp_path):
    if entrance == "resume":
        enter(open_study(journal(tmp_path), NAME), "new", "s").end()
    barrier, stays, refused = threading.Barrier(5), [], []

    def come():
        study = open_study(journal(tmp_path), NAME)
        barrier.wait()
        try:
            stays.append(enter(study, entrance, "s"))
        except ConfigError as error:
            refused.append(str(error))

    open_study(journal(tmp_path), NAME)
    threads = [threading.Thread(target=come) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(stays), len(refused)) == (1, 4)
    assert all("--join works beside it" in told for told in refused)
    living = [driver.id for driver in drivers_of(open_study(journal(tmp_path), NAME)) if driver.alive]
    assert living == [stays[0].driver.id]


def test_drivers_that_join_in_the_same_moment_draw_other_points():
    """Case B8: both find as many drivers and rows before them."""
    study = new_study()
    enter(study, "new", "s")
    workers = {Lease(study, 1, joined=True).driver.worker for _ in range(2)}
    assert len({worker_seed(42, worker, 0) for worker in workers}) == 2


def test_nobody_is_joined():
    with pytest.raises(ConfigError, match="nobody works on s: --resume"):
        enter(new_study(), "join", "s")


@pytest.mark.parametrize("how", ["gone", "defunct", "silent", "ended"])
def test_a_driver_is_dead_when_it_is_gone_or_silent_or_has_left(how, monkeypatch):
    study = new_study()
    lease = enter(study, "new", "s")
    if how == "gone":
        dead(lease)
    elif how == "ended":
        lease.end()
    elif how == "silent":
        monkeypatch.setattr(drivers, "LEASE_S", -1.0)
    else:
        with subprocess.Popen([sys.executable, "-c", ""]) as process:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # It has ended, and nobody has asked how.
            lease.driver = drivers.Driver(**{**vars(lease.driver), "pid": process.pid})
            lease._write()
            assert drivers.dead_drivers(study) == {lease.driver.id}
        return
    assert drivers.dead_drivers(study) == {lease.driver.id}
    assert enter(study, "resume", "s").driver.number == 1


def test_a_driver_on_another_machine_lives_by_its_lease(monkeypatch):
    study = new_study()
    lease = enter(study, "new", "s")
    dead(lease)
    lease.driver = drivers.Driver(**{**vars(lease.driver), "host": "elsewhere"})
    lease._write()
    assert drivers_of(study)[0].alive
    monkeypatch.setattr(drivers, "LEASE_S", -1.0)
    assert not drivers_of(study)[0].alive


def test_a_lease_is_renewed_now_and_then_and_not_at_every_chance(monkeypatch):
    lease = Lease(new_study(), 0)
    first = lease.driver.renewed
    lease.renew()
    assert lease.driver.renewed == first
    monkeypatch.setattr(drivers, "RENEW_EVERY_S", -1.0)
    lease.renew()
    assert drivers_of(lease.study)[0].renewed == lease.driver.renewed > first


def test_a_stop_is_for_those_who_work_when_it_is_asked_for():
    study = new_study()
    request_stop(study)
    first = enter(study, "new", "s")
    assert not first.stop_is_requested()
    assert [driver.id for driver in request_stop(study)] == [first.driver.id]
    assert first.stop_is_requested()
    first.end()
    second = enter(study, "resume", "s")
    assert not second.stop_is_requested()


# One study, four drivers, each with a Ray of its own: interrupted before its first result, killed, ended by SIGTERM while an
# env hangs, and left in peace. What the trials are worth is enqueued, so that ASHA's decisions are known.

WORTHS = (1.0, 2.0, 0.5, 3.0)
TOTAL_TRIALS = 6
CHAIN = (
    {"role": "train", "when": "step", "at": 3, "what": "SIGINT and hang"},
    # The next driver has trials 1, 2 and 3 before it goes on with trial 0. Trial 2 does not come to step 50.
    {"role": "train", "when": "step", "at": 50, "what": "pass"},
    {"role": "train", "when": "step", "at": 50, "what": "SIGKILL"},
    # The third goes on with trial 0, which does not come to step 50 either, and then from step 40 of trial 3.
    {"role": "train", "when": "step", "at": 50, "what": "SIGTERM and hang"},
)
FLAGS = """--algo a2c --env StudyWorth-v0 --gym-packages study_envs --conf-file conf.yml -n 100 --n-evaluations 5
--env-kwargs folder:"'.'" role:"'train'" --eval-env-kwargs folder:"'.'" role:"'eval'" -params n_steps:20 --eval-episodes 2
--seed 1 --n-jobs 1 --sampler random --pruner asha --objective mean:2 --checkpoint-every 0 --device cpu --num-threads 1
--storage study.log --study-name s"""


@contextlib.contextmanager
def driver(folder, *words):
    """A driver in a session of its own, started in the folder; what is left of it at the end is killed."""
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-m", "lit_sb3_ray", "tune", *words]
    with (folder / "driver.log").open("a") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        (folder / "driver.pid").write_text(str(process.pid))
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def run_driver(folder, *words):
    """Lets a driver run to its end; gives its exit code, how long it took after a signal, and which processes outlived it."""
    children = folder / "children.json"
    children.unlink(missing_ok=True)
    with driver(folder, *words) as process:
        code = process.wait(SECONDS)
        took = time.time() - children.stat().st_mtime if children.exists() else 0.0
    return code, took, outliving(children)


def outliving(children, patience=20.0):
    """Which of the processes that a driver had are still there, once they have had some time."""
    if not children.exists():
        return []
    left = [int(pid) for pid in yaml.safe_load(children.read_text())]
    deadline = time.monotonic() + patience
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if drivers._is_running(pid)]
        time.sleep(0.1)
    named = {}
    for pid in left:
        with contextlib.suppress(FileNotFoundError):
            named[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    # Ray's agents look only now and then whether the rest of their Ray is still there.
    return [(pid, name) for pid, name in named.items() if "Agent" not in name and "agent.py" not in name]


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """What each of the four drivers has left: its exit code, time, processes, and the rows after it."""
    folder = tmp_path_factory.mktemp("chain")
    shutil.copy(study_envs.__file__, folder / "study_envs.py")
    conf = {"StudyWorth-v0": {"n_timesteps": 100, "policy": "MlpPolicy", "callback": "study_envs.Worth"}}
    (folder / "conf.yml").write_text(yaml.safe_dump(conf))
    enqueue(folder, *({"max_grad_norm": worth} for worth in WORTHS))
    plan(folder, *CHAIN)
    left = [(*run_driver(folder, *shlex.split(FLAGS), "--n-trials", str(TOTAL_TRIALS)), rows_of(folder))]
    study = rows_folder(folder)
    left += [(*run_driver(folder, "--resume", str(study)), rows_of(folder)) for _ in range(3)]
    return folder, left


def rows_folder(folder):
    (found,) = (folder / "logs" / "a2c").glob("StudyWorth-v0_study_*")
    return found.relative_to(folder)


def test_each_driver_ends_as_it_was_ended(chain):
    assert [code for code, *_ in chain[1]] == [130, -signal.SIGKILL, 143, 0]


def test_a_signal_ends_a_study_within_seconds_and_leaves_no_process(chain):
    """Case J2: though an env hangs, and before the first result as well as later."""
    for _, took, left, _ in chain[1]:
        assert took < IN_TIME_S
        assert left == []


def test_no_process_of_a_killed_driver_s_trials_is_left(chain):
    assert not [pid for _, pid in met(chain[0]) if drivers._is_running(pid)]


def test_what_a_signal_or_a_kill_has_broken_off_is_nobody_s_fault(chain):
    _, left = chain
    for row in (left[0][-1][0], left[2][-1][3], left[2][-1][5]):
        assert (row.state, FAILURE in row.user_attrs) == (TrialState.FAIL, False)
    assert left[1][-1][3].state == TrialState.RUNNING  # What the kill has left.


def test_reports_are_written_when_a_signal_ends_the_study(chain):
    log = (chain[0] / "driver.log").read_text()
    assert log.count(f"Stopped. Go on with: lit-sb3-ray tune --resume {rows_folder(chain[0])}") == 2
    assert len(list((chain[0] / "logs" / "a2c").glob("report_*.csv"))) == 3


def test_in_the_end_exactly_the_asked_number_counts(chain):
    """Cases B6: and no row is running."""
    rows = chain[1][-1][-1]
    assert all(row.state.is_finished() for row in rows)
    assert sum(map(counts, rows)) == TOTAL_TRIALS
    assert rows_of(chain[0])[-1].number == len(rows) - 1


def test_what_is_finished_is_not_run_again(chain):
    rows = chain[1][-1][-1]
    firsts = [original_number(rows, row.number) for row in rows if counts(row)]
    assert sorted(firsts) == [0, 1, 2, 3, 7, 8]
    assert rows[1].state == TrialState.COMPLETE
    assert rows[1].datetime_complete < rows[3].datetime_complete


def test_a_broken_off_trial_goes_on_from_its_checkpoint(chain):
    """From 40 after the kill and from 80 after SIGTERM; each row has all evaluations from the beginning on."""
    rows = chain[1][-1][-1]
    assert [rows[number].user_attrs.get(CONTINUES) for number in (4, 5, 6)] == [0, 3, 5]
    assert CHECKPOINT not in rows[0].user_attrs
    assert [rows[number].user_attrs[CHECKPOINT]["mark"] for number in (3, 5)] == [40, 80]
    assert list(rows[3].intermediate_values) == [20, 40]
    assert list(rows[5].intermediate_values) == [20, 40, 60, 80]
    assert list(rows[6].intermediate_values) == [20, 40, 60, 80, 100]
    assert rows[6].params == rows[5].params == rows[3].params
    assert rows[6].value == pytest.approx((rows[6].intermediate_values[80] + rows[6].intermediate_values[100]) / 2)


def test_asha_has_its_rungs_back(chain):
    """Case B5: a trial that is weaker than those before the kill ends at the first rung; with empty rungs it would go on."""
    rows = chain[1][-1][-1]
    assert rows[2].state == rows[4].state == TrialState.PRUNED
    assert list(rows[4].intermediate_values) == [20]
    assert rows[6].state == TrialState.COMPLETE


def test_a_trial_that_was_broken_off_twice_is_worth_what_an_unbroken_one_is(chain, ray_instance, tmp_path):
    rows = chain[1][-1][-1]
    where = enqueue(tmp_path, rows[6].params)
    study_of(
        tmp_path, n_trials=1, hyperparams={"n_steps": 20, "callback": "study_envs.Worth"}, **where
    ).hyperparameters_optimization()
    (whole,) = rows_of(tmp_path)
    assert whole.intermediate_values == rows[6].intermediate_values


def test_modules_and_files_are_found_from_where_the_driver_was_started(chain):
    """`study_envs` lies in its working folder alone, the plan is given relative to it."""
    assert [what for what, _ in met(chain[0])] == [trouble["what"] for trouble in CHAIN]


def test_two_drivers_on_one_study_share_its_total(ray_instance, tmp_path):
    """The first waits in its trial until the second has done all others; no point is drawn twice, though the seed is one."""
    shutil.copy(study_envs.__file__, tmp_path / "study_envs.py")
    (tmp_path / "conf.yml").write_text(
        yaml.safe_dump({"StudyWorth-v0": {"n_timesteps": 100, "policy": "MlpPolicy", "callback": "study_envs.Worth"}})
    )
    plan(tmp_path, {"role": "train", "when": "step", "at": 3, "what": "wait"})
    with driver(tmp_path, *shlex.split(FLAGS), "--n-trials", "5") as first:
        deadline = time.monotonic() + SECONDS
        while not (tmp_path / "met.txt").exists():
            assert first.poll() is None, (tmp_path / "driver.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        where = {"storage": journal(tmp_path), "study_name": NAME}
        for entrance, told in (("new", "--join works beside it"), ("resume", "`stop` ends it")):
            with pytest.raises(ConfigError, match=f"is worked on by process {first.pid} on .*{told}"):
                study_of(tmp_path, study_options=StudyOptions(entrance=entrance), **where).hyperparameters_optimization()
        result = study_of(
            tmp_path, options={"entrance": "join"}, n_jobs=2, pruner="asha", trial_objective="mean:2", **where
        ).hyperparameters_optimization()
        (tmp_path / "gate").touch()
        assert first.wait(SECONDS) == 0
    rows = rows_of(tmp_path)
    assert len(rows) == sum(map(counts, rows)) == 5
    assert all(row.state.is_finished() for row in rows)
    assert len({row.user_attrs["driver"] for row in rows}) == 2
    assert len({row.params["learning_rate"] for row in rows}) == 5
    assert result.number is not None


def test_a_study_knows_its_folder_and_its_total(chain):
    study = optuna.load_study(study_name=NAME, storage=open_storage(journal(chain[0])))
    assert study.user_attrs[FOLDER] == str(chain[0] / rows_folder(chain[0]))
    assert study.user_attrs[TOTAL] == TOTAL_TRIALS
    assert len(drivers_of(study)) == 4
