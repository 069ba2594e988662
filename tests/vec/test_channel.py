"""Two ends of a channel take turns, whichever of them sleeps, however long the mail."""

from __future__ import annotations

import os
import socket
import threading
import time

import numpy as np
import pytest

from lit_sb3_ray.vec.channel import Channel

MAILBOX = 64


def pair(patience):
    """Makes both ends, and the socket of the second."""
    words = np.zeros((2, 8), np.int64)
    mail = np.zeros((2, MAILBOX), np.uint8)
    left, right = socket.socketpair()
    lines, boxes = [memoryview(each) for each in words], [memoryview(each) for each in mail]
    one = Channel(left, lines[0], lines[1], boxes[0], boxes[1], os.getpid(), patience)
    other = Channel(right, lines[1], lines[0], boxes[1], boxes[0], os.getpid(), patience)
    return one, other, right


@pytest.mark.parametrize("patience", [0.0, 2e-3])
def test_posts_and_mail_of_any_length_arrive_in_turn(patience):
    one, other, _ = pair(patience)
    lengths = [0, 1, MAILBOX, MAILBOX + 1, 0, 3_000_000, 5, 0] * 20

    def echo():
        for _ in lengths:
            kind, mail = other.wait(time.monotonic() + 30)
            other.post(kind + 1, bytes(mail))

    thread = threading.Thread(target=echo)
    thread.start()
    for number, length in enumerate(lengths):
        mail = bytes([number % 256]) * length
        one.post(number, mail)
        kind, answer = one.wait(time.monotonic() + 30)
        assert kind == number + 1
        assert bytes(answer) == mail
    thread.join()
    one.close()
    other.close()


def test_a_wait_ends_at_its_deadline_and_can_be_resumed():
    one, other, _ = pair(1e-3)
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        one.wait(start + 0.3)
    assert 0.3 <= time.monotonic() - start < 2
    other.post(7, b"late")
    assert bytes(one.wait(time.monotonic() + 5)[1]) == b"late"
    one.close()
    other.close()


def test_the_other_sides_end_is_noticed_but_not_before_its_last_post():
    one, other, _ = pair(0.0)
    other.post(3, b"last")
    other.close()
    assert bytes(one.wait()[1]) == b"last"
    with pytest.raises(ConnectionError):
        one.wait()
    one.post(1)
    with pytest.raises(ConnectionError):
        one.post(1, bytes(MAILBOX + 1))
    one.close()


def test_a_process_that_is_gone_is_noticed_though_its_socket_is_held():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    words, mail = np.zeros((2, 8), np.int64), np.zeros((2, MAILBOX), np.uint8)
    left, right = socket.socketpair()
    lines, boxes = [memoryview(each) for each in words], [memoryview(each) for each in mail]
    one = Channel(left, lines[0], lines[1], boxes[0], boxes[1], child, 0.0)
    with pytest.raises(ConnectionError, match="gone"):
        one.wait(time.monotonic() + 5)
    one.close()
    right.close()
