"""What learners send each other arrives whole, and a wait that is given up leaves a way to say more."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from lit_sb3_ray.lit import exchange as exchanging
from lit_sb3_ray.lit.exchange import Exchange
from lit_sb3_ray.lit.meeting import Meeting, await_all, open_meeting

HERE, SIZE = "127.0.0.1", 3


class GivenUpError(Exception):
    """Raised by a learner that looks around."""


def give_up():
    raise GivenUpError


class Learners:
    """Three of them, in threads of this process."""

    def __init__(self):
        store, port = open_meeting(HERE)
        self.meetings = [Meeting(rank, SIZE, HERE, port, HERE) for rank in range(SIZE)]
        self.threads = ThreadPoolExecutor(SIZE)
        self.all = list(self.threads.map(lambda meeting: Exchange(meeting, None if meeting.rank else store), self.meetings))

    def each(self, call):
        """Lets all do something at once; what each has got."""
        return list(self.threads.map(call, self.all))


@pytest.fixture
def learners():
    made = Learners()
    yield made
    made.threads.shutdown()


def test_the_first_tells_the_others_numbers_and_bytes(learners):
    assert learners.each(lambda one: one.tell([one.rank + 5, -1])) == [[5, -1]] * SIZE
    for content in (b"", b"weights"):
        assert learners.each(lambda one, sent=content: one.hand_out(sent if one.rank == 0 else b"own")) == [content] * SIZE


def test_the_first_gathers_bytes_of_any_length(learners):
    assert learners.each(lambda one: one.gather(b"x" * 3 * one.rank)) == [[b"", b"xxx", b"xxxxxx"], [], []]
    assert learners.each(lambda one: one.gather(b"")) == [[b""] * SIZE, [], []]


def test_files_of_any_size_arrive_in_pieces(learners, tmp_path, monkeypatch):
    monkeypatch.setattr(exchanging, "_PIECE", 4)
    sources = {1: tmp_path / "one", 2: tmp_path / "two"}
    sources[1].write_bytes(bytes(range(10)))
    sources[2].write_bytes(bytes(range(50, 54)))
    arrived = learners.each(lambda one: one.gather_files(sources.get(one.rank), lambda rank: tmp_path / f"from_{rank}"))
    assert arrived == [[tmp_path / "from_1", tmp_path / "from_2"], [], []]
    assert [path.read_bytes() for path in arrived[0]] == [path.read_bytes() for path in sources.values()]
    assert learners.each(lambda one: one.gather_files(None, lambda rank: tmp_path / "nothing")) == [[], [], []]


def test_sums_and_means_are_the_same_bits_in_all(learners):
    values = [torch.rand(100, generator=torch.Generator().manual_seed(rank)) for rank in range(SIZE)]
    total, mean = sum(values), sum(values) / SIZE

    def summed(one):
        own, gradient = values[one.rank].clone(), values[one.rank].clone()
        one.sum(own)
        one.average_gradients(gradient)
        return own, gradient

    found = learners.each(summed)
    for own, gradient in found:
        assert torch.equal(own, found[0][0])
        assert torch.equal(gradient, found[0][1])
        assert torch.allclose(own, total)
        assert torch.allclose(gradient, mean)


def test_after_a_wait_that_is_given_up_there_is_another_way(learners):
    """The first gives up waiting for a sum, and calls the others, which come to it too late."""
    first, *others = learners.all
    heard: queue.Queue[int] = queue.Queue()
    watching = [one.watch(meeting, heard.put) for one, meeting in zip(others, learners.meetings[1:], strict=True)]
    first.look_around = give_up
    with pytest.raises(GivenUpError):
        first.sum(torch.zeros(1))
    first.look_around = lambda: None
    first.abandon(7)
    assert [heard.get(timeout=20) for _ in others] == [7, 7]
    for thread in watching:
        thread.join(20)
    list(learners.threads.map(lambda one: one.sum(torch.zeros(1)), others))
    for one in others:
        one.abandon(7)
    assert learners.each(lambda one: one.tell([one.rank + 1])) == [[1]] * SIZE


def test_who_waits_for_others_to_come_may_give_up():
    store, port = open_meeting(HERE)
    with pytest.raises(GivenUpError):
        await_all(Meeting(0, 2, HERE, port, HERE), store, give_up)
