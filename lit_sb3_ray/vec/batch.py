"""The arrays of one step, laid out in one piece of memory that several processes can map."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from lit_sb3_ray.errors import ConfigError

_LINE = 64  # bytes of a cache line: what different processes write shares none
_WORDS = 8  # 64-bit words of a line

# Types of arrays that are passed in memory of no fixed type, known to both sides by their place here.
_CODES = "?bBhHiIlLfd"
DTYPES = tuple(np.dtype(code) for code in _CODES)
CODE_OF = {dtype: code for code, dtype in reversed(list(enumerate(DTYPES)))}
WIDEST = max(dtype.itemsize for dtype in DTYPES)


# Bits of what a step says beside its arrays. They are plain numbers because they are tested for every environment and step.
TRUNCATED_BIT: Final = 1  # info["TimeLimit.truncated"]
DONE_BIT: Final = 2
TERMINAL_BIT: Final = 4  # the terminal observation is in the arrays, not in the info


@dataclass(frozen=True)
class Layout:
    """Shapes and types of a batch; equal layouts map the same memory alike.

    Attributes:
        n_envs: How many environments.
        observation: Key, shape and type of each part of an observation; the key is None when it has one part only.
        action_shape: Shape of one action; None when actions are no arrays.
        mask: Entries of an action mask; 0 when there are no masks for such actions.
        shares: How many shares have a channel.
        mailbox: Bytes of each mailbox; a share has two.
    """

    n_envs: int
    observation: tuple[tuple[Hashable, tuple[int, ...], str], ...]
    action_shape: tuple[int, ...] | None
    mask: int
    shares: int
    mailbox: int

    @classmethod
    def of(
        cls, observation_space: gym.Space[Any], action_space: gym.Space[Any], n_envs: int, shares: int, mailbox: int
    ) -> Layout:
        """Lays out the batch of environments with these spaces.

        Raises:
            ConfigError: An observation has parts that no array can hold.
        """
        if isinstance(observation_space, spaces.Dict):
            parts: dict[Any, gym.Space[Any]] = dict(observation_space.spaces)
        elif isinstance(observation_space, spaces.Tuple):
            parts = dict(enumerate(observation_space.spaces))
        else:
            parts = {None: observation_space}
        observation = []
        for key, part in parts.items():
            if part.shape is None or part.dtype is None:
                place = "" if key is None else f" under {key!r}"
                raise ConfigError(
                    f"observations{place} are {type(part).__name__}, which no array can hold: wrap the environment"
                )
            observation.append((key, part.shape, np.dtype(part.dtype).str))
        return cls(n_envs, tuple(observation), action_space.shape, mask_entries(action_space), shares, mailbox)

    @property
    def size(self) -> int:
        """Bytes of the memory."""
        return self._place(None)[1]

    def map(self, memory: Any) -> Batch:
        """Makes arrays over memory of at least `size` bytes; its content stays."""
        return self._place(memory)[0]

    def _place(self, memory: Any) -> tuple[Batch, int]:
        at = 0
        batch = Batch(self)

        def take(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
            nonlocal at
            start = at
            at += -(-int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize // _LINE) * _LINE
            if memory is None:
                return np.empty(0, dtype)
            return np.ndarray(shape, dtype, memory, start)

        n = self.n_envs
        boards = take((min(1, self.shares), _WORDS), np.int64)
        words = take((self.shares, 2, _WORDS), np.int64)
        mail = take((self.shares, 2, self.mailbox), np.uint8)
        if memory is not None:
            batch.words = words
            batch.board = next((memoryview(board) for board in boards), batch.board)
            batch.lines = [(memoryview(line[0]), memoryview(line[1])) for line in words]
            batch.mail = [(memoryview(boxes[0]), memoryview(boxes[1])) for boxes in mail]
        batch.rewards = take((n,), np.float32)
        batch.dones = take((n,), np.bool_)
        batch.flags = take((n,), np.uint8)
        batch.mask_forms = take((n,), np.uint8)
        batch.masks = take((n, self.mask * WIDEST), np.uint8)
        if self.action_shape is not None:
            batch.actions_memory = take((n * int(np.prod(self.action_shape, dtype=np.int64)) * WIDEST,), np.uint8)
        for arrays in (batch.observations, batch.terminal):
            for key, shape, dtype in self.observation:
                arrays[key] = take((n, *shape), dtype)
        return batch, max(at, 1)


@dataclass
class Batch:
    """The arrays, one row an environment.

    Attributes:
        layout: What they were made from.
        observations: By key.
        terminal: Last observations of episodes, by key; a row is valid where `flags` says so.
        rewards: One a row.
        dones: One a row.
        flags: Bits (`TRUNCATED_BIT`, ...), one byte a row.
        actions_memory: Where actions go.
        mask_forms: As what each row's action mask lies in `masks`; see `masks.read_mask`.
        masks: Action masks.
        board: Control words that concern all shares.
        words: Control words of all shares; `lines` are views of them.
        lines: For each share the control words that the learner writes, and those that the actor writes.
        mail: For each share the learner's mailbox, and the actor's.
    """

    layout: Layout
    observations: dict[Any, np.ndarray[Any, Any]] = field(default_factory=dict)
    terminal: dict[Any, np.ndarray[Any, Any]] = field(default_factory=dict)
    rewards: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty(0, np.float32))
    dones: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty(0, np.bool_))
    flags: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty(0, np.uint8))
    actions_memory: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty(0, np.uint8))
    mask_forms: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty(0, np.uint8))
    masks: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    board: memoryview = field(default_factory=lambda: memoryview(b""))
    words: np.ndarray[Any, Any] = field(default_factory=lambda: np.empty((0, 2, _WORDS), np.int64))
    lines: list[tuple[memoryview, memoryview]] = field(default_factory=list)
    mail: list[tuple[memoryview, memoryview]] = field(default_factory=list)
    _action_arrays: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)

    def action_code(self, actions: Any) -> int:
        """Tells as what the actions of all environments can be passed in memory; -1 when they cannot."""
        shape = self.layout.action_shape
        if shape is None or not isinstance(actions, np.ndarray) or actions.shape != (self.layout.n_envs, *shape):
            return -1
        code: int = CODE_OF.get(actions.dtype, -1)
        return code

    def actions(self, code: int) -> np.ndarray[Any, Any]:
        """Gives the array of all actions of the kind that `action_code` has told."""
        array = self._action_arrays.get(code)
        if array is None:
            shape = (self.layout.n_envs, *(self.layout.action_shape or ()))
            array = self._action_arrays[code] = np.ndarray(shape, DTYPES[code], self.actions_memory)
        return array

    def rows(self, rows: range) -> Batch:
        """Gives the part that belongs to some environments; its arrays are views."""
        part = slice(rows.start, rows.stop)
        return Batch(
            self.layout,
            observations={key: array[part] for key, array in self.observations.items()},
            terminal={key: array[part] for key, array in self.terminal.items()},
            rewards=self.rewards[part],
            dones=self.dones[part],
            flags=self.flags[part],
            mask_forms=self.mask_forms[part],
            masks=self.masks[part],
        )


def mask_entries(action_space: gym.Space[Any]) -> int:
    """Counts the entries of a mask for such actions, as MaskablePPO has them; 0 when it has none."""
    if isinstance(action_space, spaces.Discrete):
        return int(action_space.n)
    if isinstance(action_space, spaces.MultiDiscrete):
        return int(action_space.nvec.sum())
    if isinstance(action_space, spaces.MultiBinary):
        return 2 * int(np.prod(action_space.shape))
    return 0
