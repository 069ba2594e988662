"""Signals that ask a command for its end: noted once, insisted on the second time, given back afterwards."""

import os
import signal

import pytest

from lit_sb3_ray.cli.stopping import StopRequest, Terminated, stop_requests, terminable, until_stopped


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_interrupts(signum):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt), stop_requests() as request:
        assert request.code == 0
        os.kill(os.getpid(), signum)
        assert request.signum == signum
        assert request.code == 128 + signum
        os.kill(os.getpid(), signum)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_steps_end_with_the_request():
    request = StopRequest()
    taken = []
    for step in until_stopped(range(10), request):
        taken.append(step)
        if step == 3:
            request.signum = signal.SIGINT
    assert taken == [0, 1, 2, 3]
    assert list(until_stopped(range(10), request)) == []
    assert list(until_stopped(range(3), StopRequest())) == [0, 1, 2]


def test_sigterm_interrupts_like_ctrl_c_for_a_while():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), terminable():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
