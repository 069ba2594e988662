"""A study opens in the real optuna-dashboard as it is: while it runs, and when it is finished."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import made_studies as made
import optuna
import pytest

PARAMS = {"learning_rate": 1e-3, "net_arch": "tiny"}
START = "import sys; from optuna_dashboard._cli import main; sys.exit(main())"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, server, seconds=60):
    """Tries to connect until somebody listens; a refusal comes at once."""
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            continue
    pytest.fail(f"optuna-dashboard does not listen (exit code {server.poll()})")


def ended(look, seconds=30):
    """Looks at a trial until it has ended: the server reads the storage again every few seconds only."""
    deadline = time.monotonic() + seconds
    while (trial := look())["state"] == "Running" and time.monotonic() < deadline:
        pass
    return trial


@contextmanager
def dashboard(storage):
    """Serves a storage; gives a function that asks for a path."""
    port = free_port()
    words = [sys.executable, "-c", START, storage, "--port", str(port), "--server", "wsgiref"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(port, server)

            def ask(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                    return answer.read().decode()

            yield ask
        finally:
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_the_dashboard_shows_a_study_and_what_is_added_while_it_runs(kind, tmp_path):
    url = str(tmp_path / "study.log") if kind == "journal" else f"sqlite:///{tmp_path / 'study.db'}"
    study = made.fill(made.new_study(made.journal(url) if kind == "journal" else url, "my study"), 20)
    running = study.ask(fixed_distributions={name: made.SPACE[name] for name in PARAMS})
    running.report(12.5, 2000)
    with dashboard(url) as ask:
        assert "<html" in ask("/dashboard/")
        (summary,) = json.loads(ask("/api/studies"))["study_summaries"]
        assert summary["study_name"] == "my study"
        path = f"/api/studies/{summary['study_id']}"
        shown = json.loads(ask(f"{path}?after=0"))
        assert [trial["state"].upper() for trial in shown["trials"]] == [trial.state.name for trial in study.trials]
        curve = shown["trials"][1]["intermediate_values"]
        assert [(point["step"], point["value"]) for point in curve] == list(study.trials[1].intermediate_values.items())
        told = {attribute["key"]: attribute["value"] for attribute in shown["trials"][6]["user_attrs"]}
        assert told["failure"] == "ValueError: the joint is broken"
        assert "param_importances" in json.loads(ask(f"{path}/param_importances"))
        running.report(50.0, 4000)
        study.tell(running, 50.0)
        study.set_user_attr("finished", True)
        again = ended(lambda: json.loads(ask(f"{path}?after=0"))["trials"][-1])
        assert (again["state"], len(again["intermediate_values"])) == ("Complete", 2)
    assert optuna.load_study(study_name="my study", storage=study._storage).trials[-1].value == 50.0
