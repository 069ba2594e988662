"""What a checkpoint holds of learners other than the first: handed over by each, written by the first."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.errors import LearnerError
from lit_sb3_ray.lit.exchange import Exchange
from lit_sb3_ray.lit.own_state import buffer_file, own_state, state_file
from lit_sb3_ray.lit.replay import save_buffer, used_bytes

if TYPE_CHECKING:
    from lit_sb3_ray.lit.iteration import Session

logger = logging.getLogger(__name__)


def hand_over(exchange: Exchange, session: Session, scratch: Path | None, buffer_limit: float) -> None:
    """Hands a learner's own state and its replay buffer to the first.

    Args:
        exchange: The way to it.
        session: The learner's, at a boundary.
        scratch: Folder for the buffer on its way; None for none.
        buffer_limit: Largest buffer that is handed over, in GiB.
    """
    exchange.gather(own_state(session))
    buffer, path = getattr(session.algorithm, "replay_buffer", None), None
    if buffer is not None and scratch is not None:
        if used_bytes(buffer) <= buffer_limit * 2**30:
            path = scratch / buffer_file(exchange.rank)
            save_buffer(buffer, path)
        else:
            logger.warning("learner %d: its replay buffer is too large for a checkpoint", exchange.rank)
    exchange.gather_files(path, _nowhere)
    if path is not None:
        path.unlink()


def write_states(folder: Path, states: Sequence[bytes]) -> list[Path]:
    """Writes the learners' own states.

    Args:
        folder: Where to; emptied first.
        states: What each has handed over, by rank; the first one's is left out.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    files = []
    for rank, state in enumerate(states[1:], 1):
        files.append(folder / state_file(rank))
        files[-1].write_bytes(state)
    return files


def receive_buffers(exchange: Exchange, folder: Path) -> list[Path]:
    """Writes the learners' replay buffers as they come.

    Args:
        exchange: The way to them.
        folder: Where to.

    Returns:
        The files; none of learners that have no buffer.
    """
    return exchange.gather_files(None, lambda rank: folder / buffer_file(rank))


def _nowhere(rank: int) -> Path:
    raise LearnerError(f"learner {rank} sends a file to one that is not the first")
