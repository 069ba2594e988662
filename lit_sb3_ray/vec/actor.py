"""The Ray actor that environments live in.

Nothing heavy is imported at the top: the actor first settles what libraries read when they are loaded.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.vec.guard import MARK, start_guard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lit_sb3_ray.vec.batch import Layout
    from lit_sb3_ray.vec.failures import EnvFailure
    from lit_sb3_ray.vec.group import Command, Description, EnvGroup

# Environments need no GPU and one thread each.
SETTINGS = {
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Home:
    """Where an actor lives.

    Attributes:
        node: Ray's id of its node.
        pid: Its process, which leads a process group that its environments' children belong to.
        guard: The process that ends those when the actor has ended.
    """

    node: str
    pid: int
    guard: int


class EnvActor:
    """A share of the environments in a process of its own.

    The learner reaches it through shared memory, and then `serve` is its only call, or by one call a step.

    Args:
        search_path: Where the learner looks for modules; Ray hands on only a part of that.
        niceness: The learner's. Ray lets its workers stand back, and a learner would wait for them.
    """

    def __init__(self, search_path: list[str], niceness: int) -> None:
        os.environ.update(SETTINGS)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
        sys.path.extend(folder for folder in search_path if folder not in sys.path)
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        os.environ[MARK] = secrets.token_hex(16)
        self._guard = start_guard(os.environ[MARK])
        self._group: EnvGroup | None = None
        self._arrays: Any = None

    def locate(self) -> Home:
        """Tells where the actor lives."""
        import ray

        return Home(ray.get_runtime_context().get_node_id(), os.getpid(), self._guard)

    def serve(self, address: str, password: bytes, first: int, builders: list[bytes]) -> None:
        """Builds the environments and steps them for the learner until it closes them or is gone.

        Args:
            address: Where the learner listens.
            password: What it expects to hear first.
            first: Index of the first environment.
            builders: What builds each of them, pickled.
        """
        from lit_sb3_ray.vec.memory import dial, receive_object, send_object
        from lit_sb3_ray.vec.serving import serve

        with dial(address, password) as connection:
            try:
                send_object(connection, first)
                send_object(connection, self.build(first, builders))
                if self._group is not None:
                    berth, descriptors = receive_object(connection, descriptors=3)
                    serve(self._group, connection, berth, descriptors)
            except ConnectionError:
                self._leave()

    def build(self, first: int, builders: list[bytes]) -> Description | EnvFailure:
        """Builds the environments.

        Args:
            first: Index of the first environment.
            builders: What builds each of them, pickled.

        Returns:
            What the learner must know of them, or why one could not be built.
        """
        from lit_sb3_ray.vec.failures import EnvFailure
        from lit_sb3_ray.vec.group import EnvGroup
        from lit_sb3_ray.vec.sending import build_pickled

        built = EnvGroup.build([partial(build_pickled, builder) for builder in builders], first)
        if isinstance(built, EnvFailure):
            return built
        self._group = built
        return built.describe()

    def attach(self, layout: Layout) -> tuple[bytes, dict[str, Any]]:
        """Makes arrays for the results of steps that are called for; `layout` is that of this share alone."""
        self._arrays = layout.map(bytearray(layout.size))
        self._built.attach(self._arrays)
        return b"", {}

    def step(self, actions: bytes, masked: bool) -> tuple[bytes, dict[str, Any]]:
        """Steps each environment once.

        Args:
            actions: One for each environment, pickled.
            masked: Whether action masks are asked for, too.

        Returns:
            What `EnvGroup.step` returns, pickled, and the arrays by the names they have in a batch.
        """
        mail = self._packed(self._built.step(pickle.loads(actions), masked=masked))
        arrays = self._arrays
        names = ["rewards", "dones", "flags", "observations"]
        if masked:
            names += ["mask_forms", "masks"]
        if arrays.dones.any():
            names.append("terminal")
        return mail, {name: getattr(arrays, name) for name in names}

    def execute(self, command: Command, rows: Sequence[int], arguments: bytes) -> tuple[bytes, dict[str, Any]]:
        """Carries out a command.

        Args:
            command: What to do.
            rows: With which environments.
            arguments: What the command takes, pickled.

        Returns:
            What `EnvGroup.execute` returns, pickled, and after a reset the observations.
        """
        mail = self._packed(self._built.execute(command, rows, pickle.loads(arguments)))
        return mail, {"observations": self._arrays.observations} if command.name == "RESET" else {}

    def close(self) -> EnvFailure | None:
        """Closes the environments; returns the first failure."""
        return self._built.close()

    @property
    def _built(self) -> EnvGroup:
        if self._group is None:
            raise RuntimeError("the actor has built no environments yet")
        return self._group

    def _packed(self, result: list[Any] | EnvFailure) -> bytes:
        from lit_sb3_ray.vec.sending import packed

        _, mail = packed(result, self._built.at_work)
        return mail

    def _leave(self) -> None:
        """Ends this process, since the learner is gone: environments get time to close, the guard ends what they leave."""
        import ray

        if self._group is not None:
            self._group.close()
        ray.actor.exit_actor()  # type: ignore[no-untyped-call]
