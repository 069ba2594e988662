"""Memory and sockets without names in any file system that outlive their holders."""

from __future__ import annotations

import hmac
import mmap
import os
import pickle
import secrets
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LENGTH = struct.Struct("<Q")


def anonymous_memory(size: int) -> int:
    """Makes zeroed memory that other processes can map and that vanishes with its last holder.

    Args:
        size: Bytes.

    Returns:
        A file descriptor, the caller's to close; mappings outlive it.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lit_sb3_ray", os.MFD_CLOEXEC)
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(descriptor, size)
    return descriptor


def map_memory(descriptor: int, size: int) -> mmap.mmap:
    """Maps memory; the mapping goes when nothing refers to it or to arrays over it."""
    return mmap.mmap(descriptor, size)


@contextmanager
def listening(backlog: int) -> Iterator[tuple[socket.socket, str]]:
    """Listens for processes of this machine.

    Args:
        backlog: How many may connect at once.

    Yields:
        The listening socket, and the address to give to `dial`. On Linux that is a name outside any file system; elsewhere it
        is a file in a folder that goes with the listener.
    """
    folder = None
    with socket.socket(socket.AF_UNIX) as listener:
        if sys.platform == "linux":
            address = "\0lit_sb3_ray-" + secrets.token_hex(16)
        else:
            folder = tempfile.mkdtemp(prefix="lit_sb3_ray-")
            address = str(Path(folder) / "s")
        try:
            listener.bind(address)
            listener.listen(backlog)
            yield listener, address
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


def dial(address: str, password: bytes) -> socket.socket:
    """Connects to a listener of this machine.

    Raises:
        ConnectionError: Nobody listens there any more.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        connection.sendall(password)
    except OSError:
        connection.close()
        raise
    return connection


def answer(listener: socket.socket, password: bytes, patience: float) -> socket.socket | None:
    """Accepts one connection.

    Args:
        listener: Where from.
        password: What the other side must send first: any process of the machine can connect.
        patience: Seconds to wait for each.

    Returns:
        The connection, without a timeout; None when nobody came in time, or somebody who does not know the password.
    """
    listener.settimeout(patience)
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        return None
    connection.settimeout(max(patience, 1.0))
    try:
        given = receive_exactly(connection, len(password))
    except (TimeoutError, ConnectionError):
        given = bytearray()
    if not hmac.compare_digest(given, password):
        connection.close()
        return None
    connection.settimeout(None)
    return connection


def send_object(connection: socket.socket, value: Any, descriptors: tuple[int, ...] = ()) -> None:
    """Sends a picklable value, and file descriptors with it."""
    data = pickle.dumps(value, protocol=5)
    header = _LENGTH.pack(len(data))
    if descriptors:
        socket.send_fds(connection, [header], list(descriptors))
    else:
        connection.sendall(header)
    connection.sendall(data)


def receive_object(connection: socket.socket, descriptors: int = 0) -> tuple[Any, list[int]]:
    """Receives what `send_object` sent.

    Args:
        connection: Where from.
        descriptors: How many file descriptors may come along.

    Returns:
        The value, and the descriptors, which are the caller's to close.

    Raises:
        ConnectionError: The other side is gone.
        TimeoutError: The socket has a timeout, and nothing came in time.
    """
    header, received, _, _ = socket.recv_fds(connection, _LENGTH.size, descriptors)
    if len(header) < _LENGTH.size:
        header += receive_exactly(connection, _LENGTH.size - len(header))
    return pickle.loads(receive_exactly(connection, _LENGTH.unpack(header)[0])), received


def receive_exactly(connection: socket.socket, length: int) -> bytearray:
    """Receives that many bytes.

    Raises:
        ConnectionError: The other side is gone.
        TimeoutError: The socket has a timeout, and they did not come in time.
    """
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise ConnectionError("the other side has closed the connection")
        view = view[count:]
    return data
