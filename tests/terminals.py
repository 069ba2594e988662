"""Programs run on a terminal, and what its screen shows at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).parents[1]
COLUMNS = 120


def run_on_terminal(arguments, folder, columns=COLUMNS):
    """Runs a Python program on a terminal of its own, so many columns wide.

    Returns:
        The exit code, and the lines as they stand on the screen at the end.
    """
    screen, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    files = [(os.POSIX_SPAWN_DUP2, program, number) for number in (0, 1, 2)]
    before = Path.cwd()
    os.chdir(folder)
    try:
        pid = os.posix_spawn(sys.executable, [sys.executable, *arguments], environ, file_actions=files)
    finally:
        os.chdir(before)
        os.close(program)
    written = b""
    try:
        while part := os.read(screen, 65536):
            written += part
    except OSError:  # Linux tells so that the program has ended.
        pass
    os.close(screen)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, [shown(line) for line in written.decode().replace("\r\n", "\n").split("\n")]


def shown(line):
    """What a line looks like after all that was written over it."""
    cells = []
    for part in line.split("\r"):
        cells[: len(part)] = part
    return "".join(cells).rstrip()
