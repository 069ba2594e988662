"""Making another process like the driver's."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Process:
    """What the process of a trial, of a run or of a game takes over from the driver's.

    Attributes:
        search_path: Where Python finds modules.
        folder: The working directory, where there is such a folder.
        command: `sys.orig_argv` and `sys.argv`, for what notes where a run comes from.
        niceness: Ray lets its workers stand back; trials do not.
        threads: As many as it has CPUs.
        gpus: Whether it has a share of a GPU. Without one it sees none.
    """

    search_path: tuple[str, ...]
    folder: str
    command: tuple[tuple[str, ...], tuple[str, ...]]
    niceness: int
    threads: int
    gpus: bool

    @classmethod
    def of_this(cls, cpus: float, gpus: float) -> Process:
        """Takes this process's, for one with so many CPUs and GPUs."""
        path = tuple(os.path.abspath(folder) for folder in sys.path)
        return cls(
            path,
            os.getcwd(),
            (tuple(sys.orig_argv), tuple(sys.argv)),
            os.getpriority(os.PRIO_PROCESS, 0),
            threads_of(cpus),
            gpus > 0,
        )

    def adopt(self) -> None:
        """Makes this process like that."""
        sys.path.extend(folder for folder in self.search_path if folder not in sys.path)
        sys.orig_argv[:], sys.argv[:] = self.command
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, self.niceness)
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        if not self.gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""


def threads_of(cpus: float) -> int:
    """How many threads a process with so many CPUs computes with."""
    return max(1, int(cpus))
