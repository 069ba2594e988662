"""A study that runs: what `status` and `stop` tell and do beside it, and the table that it draws meanwhile."""

import contextlib
import io
import os
import threading
import time

import pytest
from optuna.trial import TrialState
from studies import POINT, enqueue, journal, plan, rows_of, study_of

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.tuning.rows import CHECKPOINT, FAILURE

NAME = "ü/../s"
"""A study may be called anything; it has no folder of that name, nor has Ray such a number."""
SECONDS = 120.0


@pytest.mark.timeout(400)
def test_it_is_looked_at_and_ended_from_beside(ray_instance, tmp_path, monkeypatch, capsys):
    """The driver is a thread here. Its trial waits at step 50 for what never comes."""
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)  # What it prints goes to a terminal, as it sees it.
    where = enqueue(tmp_path, POINT, name=NAME)
    options = {"storage_path": str(tmp_path / "home"), "checkpoint_every": 0.0}
    wait = plan(tmp_path, {"role": "train", "when": "step", "at": 50, "what": "wait"})
    study, found = study_of(tmp_path, options=options, verbose=1, n_trials=3, **where, **wait), []
    driver = threading.Thread(target=lambda: found.append(study.hyperparameters_optimization()))
    driver.start()
    deadline = time.monotonic() + SECONDS
    while not (rows := rows_of(tmp_path, NAME)) or len(rows[0].intermediate_values) < 2:
        assert driver.is_alive() and time.monotonic() < deadline
        time.sleep(0.1)

    lines = said("status", journal(tmp_path))
    assert lines[0] == f"{NAME}: 0 of 3 trials are over (1 running)"
    assert lines[1].startswith(f"at work: process {os.getpid()} on ")
    assert lines[2] == f"trial 0: 40 env steps, last {rows[0].intermediate_values[40]:.2f}"

    told = said("stop", "--storage", journal(tmp_path), "--study-name", NAME)
    driver.join(SECONDS)
    assert not driver.is_alive()
    # The table has given standard output back in between.
    out, drawn = capsys.readouterr()
    assert f"stopped: process {os.getpid()} on " in "\n".join([*told, out])
    assert "3 trials: 1 running" in drawn and "max_grad_norm=1" in drawn and "\x1b[" in drawn
    (row,) = rows_of(tmp_path, NAME)
    assert (row.state, FAILURE in row.user_attrs, row.user_attrs[CHECKPOINT]["mark"]) == (TrialState.FAIL, False, 40)
    assert (found[0].missing, study.stop_signal) == (3, None)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["--..-s"]

    lines = said("status", str(found[0].folder))
    assert lines[:2] == [f"{NAME}: 0 of 3 trials are over (1 broken off)", "nobody is at work on it"]
    assert said("stop", str(found[0].folder)) == ["nobody works on it"]


def said(*words):
    """What a command prints, while the table has standard output for itself."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(list(words)) == 0
    return out.getvalue().splitlines()
