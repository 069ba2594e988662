"""Which Ray is found, and that one which does not answer is told in seconds."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc
import pytest
import ray
from ray.core.generated.gcs_service_pb2 import CheckAliveReply

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale import connection
from lit_sb3_ray.scale.connection import connect, find_cluster
from lit_sb3_ray.scale.ray_settings import RaySettings


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine on which no cluster was started; gives the place of Ray's note of one."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray" / "ray_current_cluster"


@pytest.fixture
def listener():
    """A socket that takes connections and is not read from."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_without_any_hint_there_is_none(machine):
    assert find_cluster() is None
    assert find_cluster(RaySettings(address="local")) is None


def test_a_cluster_that_was_started_here_is_found(machine):
    machine.write_text("10.0.0.1:6379")
    found = find_cluster()
    assert (found.address, found.is_found) == ("10.0.0.1:6379", True)
    assert find_cluster(RaySettings(address="local")) is None


def test_the_variable_goes_over_the_note_and_the_flag_over_both(machine, monkeypatch):
    machine.write_text("10.0.0.1:6379")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:6379")
    assert find_cluster().address == find_cluster(RaySettings(address="auto")).address == "10.0.0.2:6379"
    assert find_cluster(RaySettings(address="10.0.0.3:6379")).address == "10.0.0.3:6379"
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert find_cluster() is None


@pytest.mark.parametrize("address", ["http://127.0.0.1:8265", "ray://head:10001", "head"])
def test_a_variable_that_names_no_head_is_refused(machine, monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConfigError, match=f"RAY_ADDRESS '{address}'"):
        find_cluster()


def test_what_does_not_answer_is_told_in_seconds(monkeypatch, listener):
    monkeypatch.setattr(connection, "PATIENCE_S", 1.0)
    dead, silent = free_port(), listener.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(
        ConfigError, match=f"the cluster of --ray-address 127.0.0.1:{dead} does not answer .Connection refused"
    ):
        connection._await_answer(find_cluster(RaySettings(address=f"127.0.0.1:{dead}")))
    with pytest.raises(ConfigError, match=r"does not answer \(it says nothing\): give another, or start a Ray of its own"):
        connection._await_answer(find_cluster(RaySettings(address=f"127.0.0.1:{silent}")))
    with pytest.raises(ConfigError, match=r"the cluster of --ray-address no\.such\.host\.invalid:6379 does not answer"):
        connection._await_answer(find_cluster(RaySettings(address="no.such.host.invalid:6379")))
    assert time.monotonic() - begun < 15


def test_another_server_is_told_from_ray(monkeypatch, listener):
    monkeypatch.setattr(connection, "PATIENCE_S", 0.5)

    def answer():
        while True:
            try:
                other, _ = listener.accept()
            except OSError:
                return
            with other:
                other.recv(100)
                other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()
    with pytest.raises(ConfigError, match="what listens there is no Ray"):
        connection._await_answer(find_cluster(RaySettings(address=f"127.0.0.1:{listener.getsockname()[1]}")))


class Head(grpc.GenericRpcHandler):
    """Answers the question whether nodes are alive, or fails with `code`; without either it knows no such question."""

    def __init__(self, alive=None, code=None):
        self.alive, self.code = alive, code

    def service(self, call):
        if call.method != connection._CHECK_ALIVE or (self.alive is None and self.code is None):
            return None
        return grpc.unary_unary_rpc_method_handler(self._answer, response_serializer=CheckAliveReply.SerializeToString)

    def _answer(self, request, context):
        if self.code is not None:
            context.abort(self.code, "no")
        return CheckAliveReply(raylet_alive=self.alive)


@contextlib.contextmanager
def serving(*answers, port=0):
    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=answers)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield find_cluster(RaySettings(address=f"127.0.0.1:{port}"))
    finally:
        server.stop(None)


def test_one_that_is_only_being_started_is_waited_for(monkeypatch):
    """The head's port opens after a first look at it."""
    port, looks = free_port(), []

    def look(*arguments):
        looks.append(arguments)
        if len(looks) == 2:
            stack.enter_context(serving(Head(alive=[False, True]), port=port))
        return greet(*arguments)

    greet = connection._greet
    monkeypatch.setattr(connection, "_greet", look)
    with contextlib.ExitStack() as stack:
        connection._await_answer(find_cluster(RaySettings(address=f"127.0.0.1:{port}")))
    assert len(looks) >= 2


def test_a_server_of_grpc_that_is_no_head_is_told_from_one(monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE_S", 0.5)
    with serving() as cluster, pytest.raises(ConfigError, match="what listens there is no head of a Ray cluster"):
        connection._await_answer(cluster)


@pytest.mark.parametrize("alive", [[], [False, False]])
def test_a_cluster_without_a_node_on_this_machine_is_told(monkeypatch, alive):
    monkeypatch.setattr(connection, "PATIENCE_S", 0.5)
    with (
        serving(Head(alive)) as cluster,
        pytest.raises(ConfigError, match="has no node on this machine: run the command on one"),
    ):
        connection._await_answer(cluster)


def test_whether_a_token_is_right_is_left_to_ray():
    with serving(Head(code=grpc.StatusCode.UNAUTHENTICATED)) as cluster:
        connection._await_answer(cluster)


@pytest.mark.usefixtures("ray_instance")
def test_a_cluster_of_this_machine_is_found_to_be_one():
    connection._await_answer(find_cluster(RaySettings(address=ray.get_runtime_context().gcs_address)))


@pytest.mark.usefixtures("ray_instance")
def test_a_connection_that_is_there_stays_and_takes_no_other_settings():
    connect()
    with pytest.raises(ConfigError, match="connected to Ray already, with other settings"):
        connect(RaySettings(num_cpus=7))


@pytest.mark.slow
@pytest.mark.parametrize("named_by", ["flag", "variable", "note"])
def test_a_command_ends_with_one_line_when_its_cluster_is_gone(named_by, tmp_path):
    dead = f"127.0.0.1:{free_port()}"
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": str(tmp_path), "PYTHONPATH": root()}
    environment.pop("RAY_ADDRESS", None)
    words = ["tune", "--n-trials", "1", "-n", "100", "--device", "cpu", "-f", str(tmp_path / "logs"), "--verbose", "0"]
    if named_by == "flag":
        words += ["--ray-address", dead]
    elif named_by == "variable":
        environment["RAY_ADDRESS"] = dead
    else:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text(dead)
    command = [sys.executable, "-m", "lit_sb3_ray", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    assert dead in line
    assert "does not answer" in line
    assert "--ray-address local" in line
    assert not (tmp_path / "logs").exists()


def root():
    return str(Path(__file__).parents[2])
