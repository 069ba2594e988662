"""The actor's side of shared memory: answering the learner's posts."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lit_sb3_ray.vec.batch import Layout
from lit_sb3_ray.vec.channel import PLACE, Channel, Hall
from lit_sb3_ray.vec.failures import EnvFailure
from lit_sb3_ray.vec.group import Command, EnvGroup
from lit_sb3_ray.vec.memory import map_memory
from lit_sb3_ray.vec.sending import packed


class Post(IntEnum):
    """Kinds of posts beside the commands, whose numbers are lower."""

    RESULT = 50  # the actor has done what it was asked for; the mail, if any, is the result
    FAILURE = 51  # an environment has failed; the mail is an EnvFailure
    CLOSE = 60
    STEP_BY_MAIL = 61  # step with the actions in the mail
    STEP_BY_MAIL_MASKED = 62
    STEP = 100  # step with the actions in memory; the kind of the actions is added
    STEP_MASKED = 200  # and leave action masks in memory


def step_post(code: int, *, masked: bool) -> int:
    """Gives the kind of the post that asks for a step with actions in memory; see `Peer.begin_step`."""
    return (Post.STEP_MASKED if masked else Post.STEP) + code


@dataclass(frozen=True)
class Berth:
    """What an actor is told to find its place in shared memory.

    Attributes:
        layout: Layout of the batch.
        share: Which channel is the actor's.
        rows: The actor's rows.
        learner: The learner's process.
        patience: How long the actor may poll, in seconds.
    """

    layout: Layout
    share: int
    rows: range
    learner: int
    patience: float


def serve(group: EnvGroup, connection: socket.socket, berth: Berth, descriptors: Sequence[int]) -> None:
    """Answers the learner's posts until it closes the environments.

    Args:
        group: The environments.
        connection: Connection with the learner.
        berth: This actor's place.
        descriptors: The shared memory, which is closed once mapped, and the doors; see `Muster`.

    Raises:
        ConnectionError: The learner is gone.
    """
    memory, *doors = descriptors
    batch = berth.layout.map(map_memory(memory, berth.layout.size))
    os.close(memory)
    for door in doors:
        os.set_inheritable(door, False)
    theirs, mine = batch.lines[berth.share]
    inbox, outbox = batch.mail[berth.share]
    hall = Hall(batch.board, batch.words, (doors[0], doors[1]))
    channel = Channel(connection, mine, theirs, outbox, inbox, berth.learner, berth.patience, hall)
    group.attach(batch.rows(berth.rows), mine, PLACE)
    part = slice(berth.rows.start, berth.rows.stop)
    _reply(channel, group, [])
    while True:
        kind, mail = channel.wait()
        if kind >= Post.STEP:
            masked = kind >= Post.STEP_MASKED
            # A copy, since an environment may keep its action and the memory is written again.
            actions = batch.actions(kind - (Post.STEP_MASKED if masked else Post.STEP))[part].copy()
            _reply(channel, group, group.step(actions, masked=masked))
        elif kind in (Post.STEP_BY_MAIL, Post.STEP_BY_MAIL_MASKED):
            _reply(channel, group, group.step(pickle.loads(mail), masked=kind == Post.STEP_BY_MAIL_MASKED))
        elif kind == Post.CLOSE:
            _reply(channel, group, group.close() or [])
            return
        else:
            rows, arguments = pickle.loads(mail)
            _reply(channel, group, group.execute(Command(kind), rows, arguments))


def _reply(channel: Channel, group: EnvGroup, result: Sequence[Any] | EnvFailure) -> None:
    """Posts a result; nothing travels for an empty one, as that of most steps is."""
    if not result:
        channel.post(Post.RESULT)
        return
    failed, mail = packed(result, group.at_work)
    channel.post(Post.FAILURE if failed else Post.RESULT, mail)
